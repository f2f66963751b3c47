package terminal

import "testing"

func TestTextIsAsWideAsItIsDrawn(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		cut     string // to six columns
	}{
		{"shop", 4, "shop"},
		{"网站网站", 8, "网站…"},
		{"e\u0301tude de", 8, "e\u0301tude…"},
		{"abcdef", 6, "abcdef"},
		{"abcdefg", 7, "abcde…"},
	} {
		if got := Columns(c.text); got != c.columns {
			t.Errorf("%q: got %d columns, want %d", c.text, got, c.columns)
		}
		if got := Cut(c.text, 6); got != c.cut {
			t.Errorf("%q cut: got %q, want %q", c.text, got, c.cut)
		}
		if got := Columns(Pad(c.text, 12)); got != 12 {
			t.Errorf("%q padded: got %d columns", c.text, got)
		}
	}
}

func TestALineGoesOnBelowWhereItBegan(t *testing.T) {
	const line = "Reason  the relay has not answered for a while\n"
	for columns, want := range map[int]string{
		0:  line,
		80: line,
		30: "Reason  the relay has not\n        answered for a while\n",
		20: line, // too little room
	} {
		if got := Break(line, len("Reason  "), columns); got != want {
			t.Errorf("%d columns: got %q, want %q", columns, got, want)
		}
	}
}

func TestOfAListTheNewestAreSeen(t *testing.T) {
	head, list := []string{"adit", "a long line"}, []string{"1", "2", "3"}
	for _, c := range []struct {
		size Size
		want string
	}{
		{Size{}, "adit\na long line\n1\n2\n3\n"},
		{Size{Columns: 6, Rows: 6}, "adit\na long\n line\n2\n3\n"},
		{Size{Columns: 6, Rows: 3}, "adit\na long\n"},
	} {
		if got := c.size.Fit(head, list); got != c.want {
			t.Errorf("%+v: got %q, want %q", c.size, got, c.want)
		}
	}
}
