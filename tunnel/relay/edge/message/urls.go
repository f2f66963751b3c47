package message

import (
	"net/http"
	"slices"
	"strings"
)

// Site is where URLs of a site begin.
type Site struct{ Scheme, Host string }

// URLs writes the URLs by which a request names resources of its own site, beside its
// target, as the origin knows them. A server of WebDAV takes what has another scheme
// or host than it was asked with for another server's, and refuses to copy or move
// there (RFC 4918, section 9.9.4).
type URLs struct {
	// Visitors know the site by From, its origin by To.
	From, To Site
	// Target is what the origin calls what visitors ask for as target; it reports false
	// for what is not the origin's.
	Target func(target string) (string, bool)
}

// NamesURLs reports whether a request may have such URLs.
func NamesURLs(r *http.Request) bool {
	return r.Header["If"] != nil || r.Header["Destination"] != nil && moves(r.Method)
}

func moves(method string) bool { return method == "COPY" || method == "MOVE" }

// Write writes the URLs in the header of a request, which nobody else may have.
func (u URLs) Write(r *http.Request) {
	if moves(r.Method) { // elsewhere the field is what an application says it is
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

// url writes one URL (RFC 4918, section 8.3: with scheme and host, or without both).
// What is not of the site stays as it is.
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
		return ref // another host's, by the scheme of this one
	}
	if target, ok := u.Target(target); ok {
		return base + target
	}
	return ref
}

// is reports whether a URL of that scheme and authority is of the site.
func (s Site) is(scheme, authority string) bool {
	return strings.EqualFold(scheme, s.Scheme) && strings.EqualFold(s.short(authority), s.short(s.Host))
}

// short is host without the port that the scheme implies (RFC 9110, section 4.2.3).
func (s Site) short(host string) string {
	host = strings.TrimSuffix(host, ":")
	if s.Scheme == "https" {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

// tags writes the URLs in an If header that say which resource the lists behind them
// are about (RFC 4918, section 10.4.2). The lists themselves have URLs of locks, which
// stay as they are, and entity tags, in whose quotes anything may be.
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

// upTo is how many bytes of s there are up to c and with it; all if it has none.
func upTo(s string, c byte) int {
	if at := strings.IndexByte(s, c); at >= 0 {
		return at + 1
	}
	return len(s)
}
