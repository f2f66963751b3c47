package message

import (
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
)

// TestTargetByHTTP2IsAsWritten, with the query once.
func TestTargetByHTTP2IsAsWritten(t *testing.T) {
	for _, target := range []string{"/x", "/x?", "/\"x\"?q=1", "/\"x\"?", "/%41?a=%zz", "//x?q", "*"} {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		in := &http.Request{URL: u, Header: make(http.Header)}
		out := in.Clone(t.Context())
		Rewrite(&httputil.ProxyRequest{In: in, Out: out}, target, new(Way))
		if got := out.URL.RequestURI(); got != target {
			t.Errorf("%s: got %s", target, got)
		}
	}
}
