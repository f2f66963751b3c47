package message

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// shop is what visitors know as https://shop.example.com, of an origin at port 8080.
var shop = Outward{
	Visitors: Site{"https", "Shop.example.com"}, Scheme: "http", Host: "shop.example.com", Port: 8080,
	Target: func(target string) string { return target }, Secure: func() bool { return true },
}

func with(change func(*Outward)) Outward {
	o := shop
	change(&o)
	return o
}

func TestAnswersLeadToTheSiteAsVisitorsKnowIt(t *testing.T) {
	const site = "https://Shop.example.com"
	renamed := with(func(o *Outward) { o.Host = "inner.local:81" })
	bare := with(func(o *Outward) { o.Visitors = Site{"http", "shop.example.com"} })
	taken := func(target string) string { return "/api" + target }
	apart := with(func(o *Outward) { o.Visitors.Host = "shop.example.com:8443" })
	for name, c := range map[string]struct {
		from Outward
		refs map[string]string // empty: as it was
	}{
		"the origin's port": {shop, map[string]string{
			"http://shop.example.com:8080/dir/":       site + "/dir/",
			"HTTP://SHOP.EXAMPLE.COM:8080/%2F?q=/#f":  site + "/%2F?q=/#f",
			"http://shop.example.com:8080":            site,
			"http://shop.example.com:8080?q":          site + "?q",
			"https://shop.example.com:8080/x":         site + "/x",
			"http://shop.example.com:8081/x":          "",
			"http://shop.example.com:08080/x":         "",
			"http://other.example.com:8080/x":         "",
			"http://me@shop.example.com:8080/x":       "",
			"http://shop.example.com:8080\\@evil.com": "",
			"http://shop.example.com:8080.evil.com/":  "",
			"//shop.example.com:8080/x":               "",
			"ftp://shop.example.com:8080/x":           "",
			"/http://shop.example.com:8080/x":         "",
		}},
		"without TLS": {shop, map[string]string{
			"http://shop.example.com/x":     site + "/x",
			"http://shop.example.com:80/x":  site + "/x",
			"http://shop.example.com:443/x": site + "/x",
			"https://shop.example.com/x":    "",
			"/x":                            "",
			"x":                             "",
			"":                              "",
			"http://":                       "",
			"http:///x":                     "",
		}},
		"a site without TLS has that name, too": {with(func(o *Outward) { o.Secure = func() bool { return false } }), map[string]string{
			"http://shop.example.com/x":      "",
			"http://shop.example.com:80/x":   "",
			"http://shop.example.com:443/x":  site + "/x",
			"http://shop.example.com:8080/x": site + "/x",
		}},
		"TLS ends at a port of its own": {apart, map[string]string{
			"http://shop.example.com:8443/x": "https://shop.example.com:8443/x",
			"http://shop.example.com/x":      "https://shop.example.com:8443/x",
			"https://shop.example.com/x":     "https://shop.example.com:8443/x",
			"http://shop.example.com:8080/x": "https://shop.example.com:8443/x",
			"http://shop.example.com:443/x":  "https://shop.example.com:8443/x",
		}},
		"the visitor came without TLS": {bare, map[string]string{
			"http://shop.example.com:8080/x":  "http://shop.example.com/x",
			"https://shop.example.com/x":      "", // the origin means it
			"https://shop.example.com:8080/x": "",
		}},
		"... and the origin has it": {with(func(o *Outward) { *o = bare; o.Scheme = "https" }), map[string]string{
			"https://shop.example.com:8080/x": "http://shop.example.com/x",
			"https://shop.example.com/x":      "",
		}},
		"another name": {renamed, map[string]string{
			"http://inner.local:81/x":        site + "/x",
			"https://inner.local:81/x":       site + "/x",
			"http://inner.local:8080/x":      site + "/x",
			"http://inner.local/x":           "",
			"http://shop.example.com/x":      site + "/x",
			"http://shop.example.com:8080/x": site + "/x",
			"https://shop.example.com/x":     "",
			"http://xinner.local:81/x":       "",
		}},
		"another name, at the port that visitors ask": {with(func(o *Outward) { o.Visitors.Host, o.Host = "shop.example.com:8080", "localhost" }), map[string]string{
			"http://localhost:8080/x":  "https://shop.example.com:8080/x",
			"https://localhost:8080/x": "https://shop.example.com:8080/x",
			"http://localhost:8081/x":  "",
		}},
		"another name, of an agent that tells no port": {with(func(o *Outward) { o.Host, o.Port = "localhost", 0 }), map[string]string{
			"http://localhost/x":    site + "/x",
			"http://localhost:80/x": site + "/x",
			"http://localhost:0/x":  "",
		}},
		"an address": {with(func(o *Outward) { o.Host = "[::1]:8080" }), map[string]string{
			"http://[::1]:8080/x": site + "/x",
			"http://[::1]/x":      "",
			"http://[::2]:8080/x": "",
		}},
		"a path is taken out": {with(func(o *Outward) { o.Target = taken }), map[string]string{
			"http://shop.example.com:8080/x": site + "/api/x",
			"http://shop.example.com/x":      site + "/x",
		}},
		"... of a site at a port of its own": {with(func(o *Outward) { *o = apart; o.Target = taken }), map[string]string{
			"http://shop.example.com:8080/x": "https://shop.example.com:8443/api/x",
			"https://shop.example.com/x":     "https://shop.example.com:8443/x",
		}},
		"... and the visitor writes the usual port": {with(func(o *Outward) { o.Visitors.Host, o.Target = "shop.example.com:443", taken }), map[string]string{
			"http://shop.example.com:8080/x": "https://shop.example.com:443/api/x",
			"https://shop.example.com/x":     "https://shop.example.com:443/x",
		}},
		"... and the origin listens at the usual port": {with(func(o *Outward) { o.Scheme, o.Port, o.Target = "https", 443, taken }), map[string]string{
			"https://shop.example.com:443/x": "",
			"http://shop.example.com:443/x":  site + "/x",
		}},
	} {
		for ref, want := range c.refs {
			if want == "" {
				want = ref
			}
			h := http.Header{"Location": {ref}, "Content-Location": {ref}, "Link": {ref}}
			c.from.Write(h)
			if h.Get("Location") != want || h.Get("Content-Location") != want || h.Get("Link") != ref {
				t.Errorf("%s: %q: got %q, want %q", name, ref, h, want)
			}
		}
	}
}

func TestCookiesOfTheOriginsNameAreTheVisitors(t *testing.T) {
	renamed := with(func(o *Outward) { o.Host = "inner.local:81" })
	for cookie, want := range map[string]string{
		"a=b; Domain=inner.local; Path=/":               "a=b; Path=/",
		"a=b;domain = .INNER.local ;HttpOnly":           "a=b;HttpOnly",
		"a=b; Domain=inner.local; Domain=inner.local":   "a=b",
		"domain=inner.local; Path=/; Domain=.localdom":  "",
		"a=b; Domain=local":                             "",
		"a=b; Domain=shop.example.com":                  "",
		"a=\"b; Domain=inner.local":                     "a=\"b", // as browsers read it
		"a=b; Path=/Domain=inner.local; Domain; Secure": "",
		"": "",
	} {
		if want == "" {
			want = cookie
		}
		h := http.Header{"Set-Cookie": {cookie, "c=d", cookie}}
		if renamed.Write(h); h["Set-Cookie"][0] != want || h["Set-Cookie"][1] != "c=d" || h["Set-Cookie"][2] != want {
			t.Errorf("%q: got %q, want %q", cookie, h["Set-Cookie"], want)
		}
		h = http.Header{"Set-Cookie": {cookie}}
		if shop.Write(h); h.Get("Set-Cookie") != cookie {
			t.Errorf("%q of the visitors' own name: became %q", cookie, h.Get("Set-Cookie"))
		}
	}
}

// TestCookiesOfANameAboveAreBrowsersToKeep leaves these cookies alone: other sites below that
// name get them, too.
func TestCookiesOfANameAboveAreBrowsersToKeep(t *testing.T) {
	const cookie = "a=b; Domain=Example.com"
	for visitors, want := range map[string]string{
		"Shop.example.com": cookie, "a.shop.EXAMPLE.com:8443": cookie,
		"shopexample.com": "a=b", "example.com.test": "a=b",
	} {
		o := with(func(o *Outward) { o.Host, o.Visitors.Host = "example.com:81", visitors })
		h := http.Header{"Set-Cookie": {cookie}}
		if o.Write(h); h.Get("Set-Cookie") != want {
			t.Errorf("for visitors of %s: got %q, want %q", visitors, h.Get("Set-Cookie"), want)
		}
	}
}

// FuzzOutward checks that a rewritten URL is one of the visitors' site, and was one with a
// name of the origin before.
func FuzzOutward(f *testing.F) {
	for _, ref := range []string{"http://shop.example.com:8080/x", "https://inner.local:81/?q", "http://shop.example.com#f", "http://me@shop.example.com:8080/", "http://[::1]:80"} {
		f.Add(ref)
	}
	renamed := with(func(o *Outward) { o.Host = "inner.local:81" })
	f.Fuzz(func(t *testing.T, ref string) {
		got := renamed.url(ref)
		if got == ref {
			return
		}
		target, ok := strings.CutPrefix(got, "https://Shop.example.com")
		if !ok || !strings.HasSuffix(ref, target) || target != "" && !strings.ContainsRune("/?#", rune(target[0])) {
			t.Fatalf("%q became %q", ref, got)
		}
		before, err := url.Parse(strings.TrimSuffix(ref, target))
		if err != nil || before.User != nil || !strings.EqualFold(before.Hostname(), "shop.example.com") && !strings.EqualFold(before.Hostname(), "inner.local") {
			t.Errorf("%q, which is of another site, became %q", ref, got)
		}
	})
}
