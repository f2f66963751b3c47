package message

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// inward are the URLs of a site whose origin is asked without the path /api.
var inward = URLs{
	From: Site{"https", "Shop.example.com"}, To: Site{"http", "inner.example:81"},
	Target: func(target string) (string, bool) { return strings.CutPrefix(target, "/api") },
}

func TestDestinationIsAsTheOriginKnowsIt(t *testing.T) {
	for ref, want := range map[string]string{
		"https://shop.example.com/api/x%2Fy?q":             "http://inner.example:81/x%2Fy?q",
		"HTTPS://SHOP.example.com:443/api/x":               "http://inner.example:81/x",
		" https://shop.example.com:/api/x ":                "http://inner.example:81/x",
		"/api/x":                                           "/x",
		"/other":                                           "",
		"//shop.example.com/api/x":                         "",
		"https://shop.example.com/other":                   "",
		"http://shop.example.com/api/x":                    "", // a tunnel of type http has this name perhaps
		"https://shop.example.com:8443/api/x":              "",
		"https://shop.example.com:80/api/x":                "",
		"https://shop.example.com.evil.test/api/x":         "",
		"https://evil.test/https://shop.example.com/api/x": "",
		"https://me@shop.example.com/api/x":                "",
		"https://shop.example.com":                         "",
		"https://shop.example.com?/api/x":                  "",
		"api/x":                                            "",
		"https:/api/x":                                     "",
		"":                                                 "",
	} {
		if want == "" {
			want = ref
		}
		r := &http.Request{Method: "MOVE", Header: http.Header{"Destination": {ref}}}
		if inward.Write(r); r.Header["Destination"][0] != want {
			t.Errorf("%q: got %q, want %q", ref, r.Header["Destination"][0], want)
		}
	}
}

func TestDestinationOfOtherMethodsIsNotOneOfWebDAV(t *testing.T) {
	for method, want := range map[string]string{"COPY": "http://inner.example:81/x", "MOVE": "http://inner.example:81/x", "POST": "https://shop.example.com/api/x"} {
		r := &http.Request{Method: method, Header: http.Header{"Destination": {"https://shop.example.com/api/x"}}}
		if inward.Write(r); r.Header["Destination"][0] != want {
			t.Errorf("%s: got %q, want %q", method, r.Header["Destination"][0], want)
		}
	}
}

func TestTagsOfIfAreAsTheOriginKnowsThem(t *testing.T) {
	const own, lock = "<https://shop.example.com/api/x>", "<https://shop.example.com/api/lock>"
	for value, want := range map[string]string{
		"(" + lock + ")": "",
		own + ` (` + lock + ` ["a"]) (Not <DAV:no-lock>) ` + own + `(["b"])`: `<http://inner.example:81/x> (` + lock + ` ["a"]) (Not <DAV:no-lock>) <http://inner.example:81/x>(["b"])`,
		`</api/x>([W/"` + own + `)"] ` + lock + `)`:                          `</x>([W/"` + own + `)"] ` + lock + `)`,
		"<https://other.example.com/api/x> (" + lock + ")":                   "",
		own[:len(own)-1]: "",
		`"` + own:        "",
		"<":              "",
		`(["`:            "",
		"":               "",
	} {
		if want == "" {
			want = value
		}
		r := &http.Request{Method: "PUT", Header: http.Header{"If": {value, value}}}
		if inward.Write(r); r.Header["If"][0] != want || r.Header["If"][1] != want {
			t.Errorf("%q: got %q, want %q", value, r.Header["If"], want)
		}
	}
}

// FuzzTagsOfIf checks that only the site's URLs change, and that nothing panics.
func FuzzTagsOfIf(f *testing.F) {
	f.Add(`<https://shop.example.com/api/x> (<urn:uuid:1> ["a"])`)
	f.Add(`</api/x>([W/")"])<`)
	away := inward
	away.Target = func(string) (string, bool) { return "", false }
	f.Fuzz(func(t *testing.T, value string) {
		inward.tags(value)
		if got := away.tags(value); got != value {
			t.Errorf("%q became %q", value, got)
		}
	})
}

// FuzzDestination checks that the result is a URL of the origin, with the path that the
// visitor named on its own site.
func FuzzDestination(f *testing.F) {
	for _, ref := range []string{"https://shop.example.com/api/x%2Fy?q", "HTTPS://SHOP.example.com:443/api/x", "/api/x", "//shop.example.com/api/x", "https://me@shop.example.com/api/x"} {
		f.Add(ref)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		got := inward.url(ref)
		if got == ref {
			return
		}
		before, err := url.Parse(strings.TrimSpace(ref))
		if err != nil {
			return // as the origin would find, too
		}
		path := strings.TrimPrefix(got, "http://inner.example:81")
		if !strings.HasSuffix(strings.TrimSpace(ref), "/api"+path) || before.User != nil {
			t.Errorf("%q became %q", ref, got)
		}
		if host := before.Hostname(); host != "" && !strings.EqualFold(host, "shop.example.com") || host == "" && got != path {
			t.Errorf("%q, which is of another site, became %q", ref, got)
		}
	})
}
