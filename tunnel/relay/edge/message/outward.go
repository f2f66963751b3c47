package message

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Outward writes the URLs by which an origin's answer leads to its own site as visitors
// know that. An origin names itself by the Host that it was asked with, often with the
// port at which it listens, and as asked without TLS: for visitors that is nobody.
type Outward struct {
	Visitors Site   // as which the visitor asked for the site
	Scheme   string // of the origin; empty: nobody says
	Host     string // that the origin was asked with
	Port     int    // at which the origin listens; 0: nobody says
	// Target is what visitors ask for to have what the origin calls target.
	Target func(target string) string
	// Secure reports whether visitors that ask for the site without TLS are led to it
	// with TLS.
	Secure func() bool
}

// leading are the fields whose URLs are written (RFC 9110, sections 10.2.2 and 8.7).
var leading = [...]string{"Location", "Content-Location"}

// Leads reports whether an answer may have what Write writes.
func Leads(h http.Header) bool {
	return h["Location"] != nil || h["Content-Location"] != nil || h["Set-Cookie"] != nil
}

// Write writes the URLs in the header of an answer, and takes the origin's own name out
// of its cookies, if visitors know it by another: browsers keep no such cookie, but where
// that name is below the origin's. Without a name it is of the host that was asked.
func (o Outward) Write(h http.Header) {
	for _, name := range leading {
		for i, ref := range h[name] {
			h[name][i] = o.url(ref)
		}
	}
	if cookies := h["Set-Cookie"]; cookies != nil && o.renamed() && !o.below() {
		name, _ := cutPort(o.Host)
		for i, cookie := range cookies {
			cookies[i] = undomain(cookie, name)
		}
	}
}

// renamed reports whether visitors know the origin by another name than it was asked by.
func (o Outward) renamed() bool {
	inside, _ := cutPort(o.Host)
	outside, _ := cutPort(o.Visitors.Host)
	return !strings.EqualFold(inside, outside)
}

// below reports whether the name by which visitors know the origin is below the one that
// it was asked by.
func (o Outward) below() bool {
	inside, _ := cutPort(o.Host)
	outside, _ := cutPort(o.Visitors.Host)
	at := len(outside) - len(inside)
	return at > 0 && outside[at-1] == '.' && strings.EqualFold(outside[at:], inside)
}

// url writes one URL. What is not of the site stays as it is, and so does what leads to
// TLS whoever came without.
func (o Outward) url(ref string) string {
	scheme, rest, ok := strings.Cut(ref, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" || scheme == "https" && o.Visitors.Scheme == "http" && o.Scheme != "https" {
		return ref
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, target := rest[:end], rest[end:]
	switch {
	case o.own(Site{scheme, authority}):
		target = o.Target(target)
	case scheme == o.Visitors.Scheme && o.portless(authority):
	case scheme == "http" && o.Visitors.Scheme == "https" && o.plain(authority):
	default:
		return ref
	}
	return o.Visitors.Scheme + "://" + o.Visitors.Host + target
}

// own reports whether only the origin would call the site so.
func (o Outward) own(site Site) bool {
	name, port := cutPort(site.Host)
	inside, _ := cutPort(o.Host)
	outside, public := cutPort(o.Visitors.Host)
	listens := o.Port != 0 && port == strconv.Itoa(o.Port)
	if strings.EqualFold(name, outside) {
		return listens && port != cmp.Or(public, usualPort[o.Visitors.Scheme])
	}
	return listens && strings.EqualFold(name, inside) || o.renamed() && site.is(site.Scheme, o.Host)
}

var usualPort = map[string]string{"http": "80", "https": "443"}

// portless reports whether an authority is that of the site but for the port that visitors
// ask, which the origin does not see.
func (o Outward) portless(authority string) bool {
	outside, public := cutPort(o.Visitors.Host)
	return public != "" && strings.EqualFold(authority, outside)
}

// plain reports whether an authority without TLS is that of the site with it: at the port
// of TLS nothing else is, and at the usual one what Secure says.
func (o Outward) plain(authority string) bool {
	name, port := cutPort(authority)
	outside, public := cutPort(o.Visitors.Host)
	if !strings.EqualFold(name, outside) {
		return false
	}
	if port == "443" || port != "" && port == public {
		return true
	}
	return (port == "" || port == "80") && o.Secure()
}

// cutPort cuts an authority into its name and its port; the latter is empty if it has none.
func cutPort(authority string) (name, port string) {
	at := strings.LastIndexByte(authority, ':')
	if at < 0 || strings.IndexByte(authority[at:], ']') >= 0 {
		return authority, ""
	}
	return authority[:at], authority[at+1:]
}

// undomain takes the attribute Domain out of a cookie if it is name (RFC 6265, section
// 5.2.3: with a dot before it or without).
func undomain(cookie, name string) string {
	parts := strings.Split(cookie, ";")
	kept := slices.DeleteFunc(parts[1:], func(attribute string) bool {
		key, value, _ := strings.Cut(attribute, "=")
		return strings.EqualFold(strings.TrimSpace(key), "Domain") &&
			strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(value), "."), name)
	})
	return strings.Join(parts[:1+len(kept)], ";")
}
