package message

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"testing"
)

// TestTargetByHTTP2IsAsWritten also checks that the query appears only once.
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

// TestSiteIsOneHost checks that the site is the one that the relay was asked for if load
// balancers list several hosts, or an invalid one.
func TestSiteIsOneHost(t *testing.T) {
	for _, c := range []struct {
		said []string
		want string
	}{
		{nil, "inner.test"},
		{[]string{"Shop.example.com:8443"}, "Shop.example.com:8443"},
		{[]string{"[2001:db8::1]:8443"}, "[2001:db8::1]:8443"},
		{[]string{"shop.example.com, proxy.example.com"}, "inner.test"},
		{[]string{"shop.example.com", "proxy.example.com"}, "inner.test"},
		{[]string{"me@shop.example.com"}, "inner.test"},
		{[]string{"shop.example.com/x"}, "inner.test"},
		{[]string{""}, "inner.test"},
	} {
		r := &http.Request{Host: "inner.test", Header: http.Header{"X-Forwarded-Proto": {"https"}}}
		if c.said != nil {
			r.Header["X-Forwarded-Host"] = c.said
		}
		way := WayOf(r, "relay.test", netip.MustParseAddr("192.0.2.1"), true, false)
		if got, want := way.Site(), (Site{"https", c.want}); got != want {
			t.Errorf("%q: got %v, want %v", c.said, got, want)
		}
	}
}
