package relay

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestLongPathsHideNothing checks that a visitor requesting long names does not make the
// log lose other visitors' events: a stored message has room for 1 MiB.
func TestLongPathsHideNothing(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	get := func(method, path string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.http+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	get("GET", "/before")
	long := "/" + strings.Repeat("%3C", 10_000) // a "<", which JSON writes as six bytes
	for range 60 {
		get("GET", long)
	}
	get(strings.Repeat("M", 10_000), "/"+strings.Repeat("%E8%AA%9E", 2000))
	get("GET", "/after")
	found := func(path string) (n int) {
		for _, e := range searched(s.Relay, func(e *wire.Access) bool { return strings.HasPrefix(e.Path, path) }, 1000) {
			n++
			if len(e.Path) > 2048+len("…") || len(e.Method) > 32+len("…") || strings.Contains(e.Path, "\ufffd") {
				t.Errorf("an event has %d bytes of method and %d of path", len(e.Method), len(e.Path))
			}
		}
		return n
	}
	eventually(t, "all are stored", func() bool {
		return found("/before") == 1 && found("/<<<") == 60 && found("/語") == 1 && found("/after") == 1 || s.access.Lost() > 0
	})
	if lost := s.access.Lost(); lost > 0 {
		t.Errorf("%d access events were lost", lost)
	}
}
