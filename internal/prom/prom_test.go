package prom

import "testing"

func TestText(t *testing.T) {
	var p Text
	p.Family("a_total", "counter", "Back\\slash.")
	p.Sample(1)
	p.Sample(0.5, "x", "q\"u\\o\nte", "y", "")
	p.Family("b", "gauge", "B.")
	p.Sample(Truth(true))
	p.Sample(Truth(false), "z", "1")
	want := "# HELP a_total Back\\\\slash.\n# TYPE a_total counter\na_total 1\n" +
		`a_total{x="q\"u\\o\nte",y=""} 0.5` + "\n# HELP b B.\n# TYPE b gauge\nb 1\nb{z=\"1\"} 0\n"
	if got := p.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
