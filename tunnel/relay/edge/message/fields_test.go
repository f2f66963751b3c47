package message

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFieldsOfAConnectionAreLeftOut covers headers that name few fields and headers that name
// many.
func TestFieldsOfAConnectionAreLeftOut(t *testing.T) {
	for _, filler := range []string{"", strings.Repeat("x, ", 200)} {
		fields := http.Header{"One": {"1"}, "Two": {"2"}, "Three": {"3"}, "Keep-Alive": {"4"}}
		var left []string
		for name := range EndToEnd(fields, []string{filler + "close, oNE", "\t three \t,"}) {
			left = append(left, name)
		}
		if !slices.Equal(left, []string{"Two"}) {
			t.Errorf("behind %d bytes: got %q", len(filler), left)
		}
	}
}

// TestManyNamesOfAConnectionTakeNoTime looks up as many fields and trailers as a stranger may
// send in a list of as many names. With a linear search for each, it took 0.8 s.
func TestManyNamesOfAConnectionTakeNoTime(t *testing.T) {
	write := func(names string) time.Duration {
		r := &http.Request{
			Method: http.MethodPost, ContentLength: -1, ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Connection": {names}}, Trailer: make(http.Header),
		}
		for i := range 5000 {
			r.Trailer[fmt.Sprintf("T%d", i)] = nil
		}
		way := WayOf(r, "relay.test", netip.MustParseAddr("192.0.2.1"), false, false)
		begun := time.Now()
		w := bufio.NewWriter(io.Discard)
		if err := (Head{Host: "shop.test", Target: "/", Way: &way}).Write(w, r); err != nil {
			t.Fatal(err)
		}
		if err := WriteEnd(w, r, nil); err != nil {
			t.Fatal(err)
		}
		return time.Since(begun)
	}
	one := min(write("x"), write("x"), write("x"))
	if many := min(write(strings.Repeat("x,", 15_000)), write(strings.Repeat("x,", 15_000))); many > 10*one+200*time.Millisecond {
		t.Errorf("it takes %v, and with one name %v", many, one)
	}
}
