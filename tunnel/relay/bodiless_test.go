package relay

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestNoBodyIsNoBody sends requests without a body. Over HTTP/3, and perhaps over HTTP/2,
// only the end of the stream shows that there is none. The origin must not be sent empty
// chunks.
func TestNoBodyIsNoBody(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Set("X-Got", fmt.Sprint(r.Method, " ", r.ContentLength, " ", r.TransferEncoding, " ", string(body), " ", err))
	}))
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		for _, c := range []struct {
			method, body, want string
		}{
			{http.MethodGet, "", "GET 0 []  <nil>"},
			{http.MethodHead, "", "HEAD 0 []  <nil>"},
			{http.MethodDelete, "", "DELETE 0 []  <nil>"},
			{http.MethodGet, "query", "GET -1 [chunked] query <nil>"},
			{"REPORT", "query", "REPORT -1 [chunked] query <nil>"},
		} {
			// Its length is not said, so that HTTP/2 too tells its end behind the header.
			req, err := http.NewRequestWithContext(t.Context(), c.method, s.https, io.MultiReader(strings.NewReader(c.body)))
			if err != nil {
				t.Fatal(err)
			}
			if c.body == "" && version == "HTTP/1.1" {
				req.Body = nil
			}
			resp, err := visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Get("X-Got"); got != c.want {
				t.Errorf("%s %q by %s: the origin got %q, want %q", c.method, c.body, version, got, c.want)
			}
		}
	}
}
