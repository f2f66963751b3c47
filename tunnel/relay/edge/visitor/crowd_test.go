package visitor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestLargeHeadsCountAsSeveralRequests also counts heads with many short fields as large.
func TestLargeHeadsCountAsSeveralRequests(t *testing.T) {
	many := make(http.Header)
	for i := range 1500 {
		many.Set(fmt.Sprintf("%x", i), "")
	}
	usual := make(http.Header)
	for i := range 50 {
		usual.Set(fmt.Sprintf("X-Field-%d", i), strings.Repeat("x", 50))
	}
	for name, c := range map[string]struct {
		header      http.Header
		least, most int
	}{
		"usual":       {usual, 1, 1},
		"one field":   {http.Header{"X": {strings.Repeat("x", 40_000)}}, 3, 3},
		"many fields": {many, 7, 9},
	} {
		v := New(Config{PerAddress: 100})
		r := &http.Request{ProtoMajor: 2, Header: c.header}
		place, in := v.Crowd(httptest.NewRecorder(), r, netip.MustParseAddr("192.0.2.1"), false)
		if !in || place.n < c.least || place.n > c.most {
			t.Errorf("%s: it counts as %d requests, want %d to %d", name, place.n, c.least, c.most)
		}
	}
}

func TestPlacesOfAnAddressAreBounded(t *testing.T) {
	a, b := netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("2001:db8::/64")
	var c crowds
	for i, step := range []struct {
		from     netip.Prefix
		take     int // less than zero: that many are given back
		accepted bool
	}{{a, 4, true}, {a, 6, true}, {a, 1, false}, {b, 11, false}, {b, 10, true}, {a, -4, false}, {a, 5, false}, {a, 4, true}} {
		if step.take < 0 {
			c.give(step.from, -step.take)
		} else if got := c.take(step.from, step.take, 10); got != step.accepted {
			t.Errorf("step %d: %d more of %s: got %t, want %t", i, step.take, step.from, got, step.accepted)
		}
	}
	for _, from := range []netip.Prefix{a, b} {
		c.give(from, 4)
		c.give(from, 6)
	}
	if len(c.of) != 0 {
		t.Errorf("when all have gone: got %v, want no address", c.of)
	}
}

// TestStreamsAreCountedUntilTheirConnectionRests also checks that no more streams are counted
// than a connection may have.
func TestStreamsAreCountedUntilTheirConnectionRests(t *testing.T) {
	from := netip.MustParsePrefix("192.0.2.1/32")
	var c crowds
	var first, second, unused streaming
	for i := range 2 * StreamsOfConnection {
		if got, want := c.begin(&first, from), min(i+1, StreamsOfConnection); got != want {
			t.Fatalf("stream %d: got %d, want %d", i+1, got, want)
		}
	}
	if got, want := c.begin(&second, from), StreamsOfConnection+1; got != want {
		t.Errorf("one of another connection: got %d, want %d", got, want)
	}
	c.rest(&unused, false)
	c.rest(&unused, true)
	c.rest(&first, false)
	if got := c.begin(&first, from); got != 2 {
		t.Errorf("one of the first, which had rested: got %d, want 2", got)
	}
	c.rest(&first, true)
	if got := c.begin(&first, from); got != 1 {
		t.Errorf("one of the first, which has gone: got %d, want that of the other alone", got)
	}
	c.rest(&second, true)
	if len(c.open) != 0 {
		t.Errorf("when all have gone: got %v, want no address", c.open)
	}
}
