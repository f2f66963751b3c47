// Package message rewrites a request and its answer on their way between a visitor and an
// origin (RFC 9110, section 7.6): it keeps the target as it was written, drops the fields that
// belong to one connection, adds the fields that describe the visitor and the way the request
// came, and makes the changes that a tunnel asks for. It does not deal with streams, bodies or
// access control.
package message

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Target returns the target of a request as its origin is to get it: the path and query
// exactly as the visitor wrote them (RFC 9112, section 3.2.1), with only those bytes encoded
// that no target may contain. It reports false if the target is not one that an origin can
// serve, such as a URL without an authority.
func Target(r *http.Request) (string, bool) {
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

// sayable reports whether a byte may appear in the target of a request. The start of a
// fragment may not, since servers interpret it differently.
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

// SetTarget makes a URL, whose path is that of target, be sent as target. A target that begins
// with two slashes would be sent as a URL with a host, so that is left as net/url writes it.
func SetTarget(u *url.URL, target string) {
	path, query, asked := strings.Cut(target, "?")
	u.RawQuery, u.ForceQuery = query, asked && query == ""
	if !strings.HasPrefix(target, "//") && target != u.RequestURI() {
		u.Opaque = path
	}
}

// Host returns the name in a Host header, in lower case.
func Host(host string) (string, bool) {
	name := host
	if strings.HasPrefix(host, "[") || strings.Count(host, ":") == 1 {
		h, port, err := net.SplitHostPort(host)
		if err != nil && !strings.HasSuffix(host, "]") {
			return "", false
		}
		if err == nil {
			if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0) {
				return "", false
			}
			name = h
		}
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return "", false
	}
	// Check before lowering: browsers do not treat İ as i, so its lower-case form would be
	// somebody else's name.
	for _, c := range []byte(name) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '.', c == '_', c == ':', c == '[', c == ']':
		default:
			return "", false
		}
	}
	return strings.ToLower(name), true
}
