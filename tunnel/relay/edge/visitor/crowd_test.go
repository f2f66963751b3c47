package visitor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// TestLargeHeadsCountAsSeveralRequests: large are those of many short fields, too.
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
