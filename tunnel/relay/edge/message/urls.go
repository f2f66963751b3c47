package message

import (
	"net/http"
	"slices"
	"strings"
)

// Site is the beginning that a site's URLs share.
type Site struct{ Scheme, Host string }

// URLs rewrites the URLs in which a request names resources of its own site, other than its
// target, to the form that the origin knows. A WebDAV server that sees another scheme or host
// than its own takes the URL for another server's, and refuses to copy or move there (RFC
// 4918, section 9.9.4).
type URLs struct {
	// Visitors know the site as From, its origin as To.
	From, To Site
	// Target returns the origin's name for what visitors call target. It reports false if the
	// origin does not serve that.
	Target func(target string) (string, bool)
}

// NamesURLs reports whether a request may contain such URLs.
func NamesURLs(r *http.Request) bool {
	return r.Header["If"] != nil || r.Header["Destination"] != nil && moves(r.Method)
}

func moves(method string) bool { return method == "COPY" || method == "MOVE" }

// Write rewrites the URLs in the header of a request. Nobody else may be using the header.
func (u URLs) Write(r *http.Request) {
	if moves(r.Method) { // with other methods the meaning of the field is up to the application
		u.each(r.Header, "Destination", u.url)
	}
	u.each(r.Header, "If", u.tags)
}

func (u URLs) each(h http.Header, name string, write func(string) string) {
	if values := h[name]; values != nil {
		values = slices.Clone(values)
		for i, v := range values {
			values[i] = write(v)
		}
		h[name] = values
	}
}

// url rewrites one URL (RFC 4918, section 8.3: with scheme and host, or without both). It
// returns URLs of other sites unchanged.
func (u URLs) url(ref string) string {
	base, target := "", strings.TrimSpace(ref)
	if !strings.HasPrefix(target, "/") {
		scheme, rest, ok := strings.Cut(target, "://")
		at := strings.IndexByte(rest, '/')
		if !ok || at < 0 || !u.From.is(scheme, rest[:at]) {
			return ref
		}
		base, target = u.To.Scheme+"://"+u.To.Host, rest[at:]
	} else if strings.HasPrefix(target, "//") {
		return ref // another host's; it only shares the scheme
	}
	if target, ok := u.Target(target); ok {
		return base + target
	}
	return ref
}

// is reports whether a URL with that scheme and authority belongs to the site.
func (s Site) is(scheme, authority string) bool {
	return strings.EqualFold(scheme, s.Scheme) && strings.EqualFold(s.short(authority), s.short(s.Host))
}

// short returns host without the port that the scheme implies (RFC 9110, section 4.2.3).
func (s Site) short(host string) string {
	host = strings.TrimSuffix(host, ":")
	if s.Scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// tags rewrites the URLs in an If header that name the resource for the lists that follow (RFC
// 4918, section 10.4.2). The lists themselves contain URLs of locks, which stay unchanged, and
// entity tags, which may contain anything within quotes.
func (u URLs) tags(value string) string {
	var out strings.Builder
	list := false
	for i := 0; i < len(value); {
		size := 1
		switch value[i] {
		case '(':
			list = true
		case ')':
			list = false
		case '"':
			size = upTo(value[i+1:], '"') + 1
		case '<':
			size = upTo(value[i+1:], '>') + 1
			if tag, closed := strings.CutSuffix(value[i+1:i+size], ">"); closed && !list {
				out.WriteString("<" + u.url(tag) + ">")
				i += size
				continue
			}
		}
		out.WriteString(value[i : i+size])
		i += size
	}
	return out.String()
}

// upTo returns how many bytes of s there are up to and including c, or len(s) if it has none.
func upTo(s string, c byte) int {
	if at := strings.IndexByte(s, c); at >= 0 {
		return at + 1
	}
	return len(s)
}
