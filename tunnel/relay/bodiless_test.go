package relay

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestNoBodyIsNoBodyByHTTP3 asks without a body: by HTTP/3 that is seen by the end
// of the stream alone, and an origin must not be sent chunks of nothing.
func TestNoBodyIsNoBodyByHTTP3(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.Header().Set("X-Got", fmt.Sprint(r.Method, " ", r.ContentLength, " ", r.TransferEncoding, " ", string(body), " ", err))
	}))
	visitor := s.visitor3(t)
	for _, c := range []struct {
		method, body, want string
	}{
		{http.MethodGet, "", "GET 0 []  <nil>"},
		{http.MethodHead, "", "HEAD 0 []  <nil>"},
		{http.MethodDelete, "", "DELETE 0 []  <nil>"},
		{http.MethodGet, "query", "GET -1 [chunked] query <nil>"},
		{"REPORT", "query", "REPORT -1 [chunked] query <nil>"},
	} {
		var body io.Reader
		if c.body != "" {
			body = io.MultiReader(strings.NewReader(c.body)) // whose length the visitor does not say
		}
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.https, body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("X-Got"); got != c.want {
			t.Errorf("%s %q: the origin got %q, want %q", c.method, c.body, got, c.want)
		}
	}
}
