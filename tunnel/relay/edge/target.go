package edge

import (
	"net/http"
	"strings"
)

// targetOf returns what a request asks for, as its origin is to get it: the
// path and query exactly as the visitor wrote them (RFC 9112, section 3.2.1),
// with only those bytes encoded that no target may have. It reports false for
// what is no target of an origin, such as a URL without an authority.
func targetOf(r *http.Request) (string, bool) {
	raw := r.RequestURI
	switch {
	case strings.HasPrefix(raw, "/"):
	case raw == "*":
		return raw, r.Method == http.MethodOptions
	case r.ProtoMajor == 1 && r.URL.Scheme != "" && r.URL.Opaque == "": // absolute form
		rest, ok := strings.CutPrefix(raw[len(r.URL.Scheme):], "://")
		if !ok {
			return "", false
		}
		switch at := strings.IndexAny(rest, "/?#"); {
		case at < 0 && r.Method == http.MethodOptions:
			return "*", true // RFC 9112, section 3.2.4
		case at < 0:
			return "/", true
		case rest[at] == '/':
			raw = rest[at:]
		default:
			raw = "/" + rest[at:]
		}
	default:
		return "", false
	}
	for i := range len(raw) {
		if !sayable(raw[i]) {
			return encoded(raw), true
		}
	}
	return raw, true
}

// sayable reports whether a byte may be in the target of a request. What begins
// a fragment may not: servers differ in what they make of it.
func sayable(c byte) bool { return c > ' ' && c < 0x7f && c != '#' }

func encoded(target string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(target) {
		if c := target[i]; sayable(c) {
			b.WriteByte(c)
		} else {
			b.WriteString(string([]byte{'%', digits[c>>4], digits[c&15]}))
		}
	}
	return b.String()
}
