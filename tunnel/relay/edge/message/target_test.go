package message

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzTarget checks that an origin gets a valid target with the same meaning as the visitor's.
func FuzzTarget(f *testing.F) {
	for _, target := range []string{"/", "/a%2fb|c", "//x/é#y", "*", "http://h", "http://h?q", "http:.x", "h:80", "/%", "/?#", "http://h/a|%2F?b#c", "A:/0://"} {
		f.Add("GET", target)
	}
	f.Add("OPTIONS", "*")
	f.Add("OPTIONS", "http://h")
	f.Add("CONNECT", "h:80")
	f.Fuzz(func(t *testing.T, method, target string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: h\r\n\r\n")))
		if err != nil {
			return
		}
		got, ok := Target(r)
		if !ok {
			return
		}
		for i := range len(got) {
			if !sayable(got[i]) {
				t.Fatalf("%q became %q", target, got)
			}
		}
		if got == "*" {
			return
		}
		if !strings.HasPrefix(got, "/") {
			t.Fatalf("%q became %q", target, got)
		}
		u, err := url.ParseRequestURI(got)
		if err != nil {
			t.Fatalf("%q became %q: %v", target, got, err)
		}
		if want := r.URL.Path; u.Path != want && !(want == "" && u.Path == "/") {
			t.Fatalf("%q became %q: the path is %q, want %q", target, got, u.Path, want)
		}
	})
}

// FuzzForwardedFor checks that, whatever X-Forwarded-For contains, there is a visitor, and it
// is never a load balancer that only passed the request on.
func FuzzForwardedFor(f *testing.F) {
	for _, text := range []string{"192.0.2.1", "192.0.2.1:80", "[2001:db8::1]:80", "::ffff:192.0.2.1", "a, b", "192.0.2.1%eth0", "[", "]:", "%"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, ok := hopAddr(text)
		if ok && (!a.IsValid() || a.Is4In6() || a.Zone() != "") {
			t.Fatalf("%q is %v", text, a)
		}
		again, _ := hopAddr(a.String())
		if ok && again != a {
			t.Fatalf("%q is %v, which is %v", text, a, again)
		}
	})
}

func TestDisguisedFields(t *testing.T) {
	for name, want := range map[string]bool{
		"X-Forwarded-For": false, "X_Forwarded_For": true, "x.forwarded.host": true, "X_Real-Ip": true, "Content_Length": true,
		"Transfer_encoding": true, "Content-Length": false, "X_Other": false, "Content-Type": false, "": false, "Contentlength_": false,
	} {
		if got := disguised(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func FuzzHostName(f *testing.F) {
	for _, s := range []string{"shop.example.com", "SHOP:80", "[::1]:80", "a..b", "a:b:c", "[", "a.:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, ok := Host(s)
		if ok && (name == "" || len(name) > 253) {
			t.Fatalf("%q gives %q", s, name)
		}
	})
}

func TestHostNames(t *testing.T) {
	for host, want := range map[string]string{
		"shop.example.com": "shop.example.com", "Shop.Example.COM.:8080": "shop.example.com", "[::1]:80": "::1", "[::1]": "[::1]",
		"": "", ":80": "", "a b": "", "a/b": "", "a@b": "", "a:99999": "", "a:x": "", "ä.de": "", "a\x00": "",
		"sh\u0130p.relay.test": "", "\u212aelvin.relay.test": "",
	} {
		got, ok := Host(host)
		if ok != (want != "") || got != want && ok {
			t.Errorf("%q: got %q, %v; want %q", host, got, ok, want)
		}
	}
}
