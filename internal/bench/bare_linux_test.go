package main

import (
	"bytes"
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// withOrigin returns an origin on loopback and how long a test may use it.
func withOrigin(t *testing.T) (context.Context, *origin) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	o, err := startOrigin("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(o.close)
	return ctx, o
}

func TestTheFloorIsMeasured(t *testing.T) {
	ctx, origin := withOrigin(t)
	table := newTable()
	o := options{
		plan: loopbackPlan, each: 500 * time.Millisecond,
		only: regexp.MustCompile("^(tcp (down|up) x1|tcp requests x(1|64)|http requests x1|tcp new connections|udp)$"),
	}
	bareColumns := []string{"bare-udp", "bare-tcp", "bare-tls"}
	for _, column := range bareColumns {
		if err := measureOther(ctx, table, column, "", origin, o); err != nil {
			t.Fatalf("%s: %v", column, err)
		}
	}
	stoodStill := func(name, column string) bool { // a machine so busy that nothing came: then no byte has a cost
		bulk, _, cost := strings.Cut(name, ", CPU")
		i := slices.IndexFunc(table.figures, func(f figure) bool { return f.Name == bulk })
		if !cost || i < 0 || table.figures[i].Unit != "MB/s" {
			return false
		}
		came, measured := table.figures[i].Values[column]
		return measured && came == 0
	}
	figures := map[string]figure{}
	for _, f := range table.figures {
		figures[f.Name] = f
		for _, column := range bareColumns {
			value, measured := f.Values[column]
			left := column == "bare-udp" && (strings.HasPrefix(f.Name, "tcp down") || strings.HasPrefix(f.Name, "tcp up"))
			switch {
			case !measured && !left && !stoodStill(f.Name, column):
				t.Errorf("%s, %s: not measured", f.Name, column)
			case measured && left:
				t.Errorf("%s, %s: measured, and nothing that is lost is sent again", f.Name, column)
			case measured && value <= 0 && strings.HasPrefix(f.Unit, "req"): // at least one was answered
				t.Errorf("%s, %s: got %v", f.Name, column, value)
			}
		}
	}
	for _, name := range []string{"tcp down x1", "tcp up x1", "tcp requests x64, CPU of relay and agent", "tcp new connections", "udp at most, echoed"} {
		if _, ok := figures[name]; !ok {
			t.Errorf("%s is not there", name)
		}
	}
	var out bytes.Buffer
	printFigures(&out, table.figures)
	if !strings.Contains(out.String(), "| direct | bare UDP | bare TCP | bare TLS | DTLS | TLS |") {
		t.Errorf("got a table without the floor:\n%s", &out)
	}
	out.Reset()
	printFigures(&out, []figure{{Name: "x", Unit: "y", Values: map[string]float64{"direct": 0}}})
	if want := "\n| figure | unit | direct | DTLS | TLS |\n|---|---|---|---|---|\n| x | y | 0.00 | – | – |\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestTheFloorIsOfLoopback(t *testing.T) {
	far := options{transports: []string{"direct", "bare-tcp"}}
	if err := far.check(); err != nil {
		t.Errorf("over loopback: %v", err)
	}
	if err := far.paths.Set("rtt=1ms"); err != nil {
		t.Fatal(err)
	}
	if err := far.check(); err == nil {
		t.Error("over a path: the floor was taken")
	}
	if err := (options{transports: []string{"bare-udp"}, against: "./adit-before"}).check(); err == nil {
		t.Error("against another build: the floor was taken for a column")
	}
}
