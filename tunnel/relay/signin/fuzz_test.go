package signin

import (
	"net/http"
	"strings"
	"testing"
)

// FuzzStrip sends a request with arbitrary cookies. None of the relay's are left, and all
// others are.
func FuzzStrip(f *testing.F) {
	for _, line := range []string{"", "a=1", "a=1; __Host-adit-visitor=x", "adit-sign-in=1;adit-visitor=2", "=; ;;a", "__Host-=1; adit-visitor"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		before := &http.Request{Header: http.Header{"Cookie": {line}}}
		var want []string
		for _, c := range before.Cookies() {
			if name := strings.TrimPrefix(c.Name, hostPrefix); name != visitorCookie && name != pendingCookie {
				want = append(want, c.Name+"="+c.Value)
			}
		}
		Strip(before.Header)
		var got []string
		for _, c := range before.Cookies() {
			got = append(got, c.Name+"="+c.Value)
		}
		if strings.Join(got, ";") != strings.Join(want, ";") {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	})
}
