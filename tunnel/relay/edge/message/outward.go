package message

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// Outward rewrites the URLs in which an origin's answer refers to its own site, so that they
// work for visitors. An origin names itself by the Host of the request, often with the port
// that it listens on, and with a scheme without TLS. None of these need be what visitors use.
type Outward struct {
	Visitors Site   // the site as the visitor asked for it
	Scheme   string // of the origin; empty: unknown
	Host     string // that the origin was asked with
	Port     int    // that the origin listens on; 0: unknown
	// Target returns what visitors ask for to get what the origin calls target.
	Target func(target string) string
	// Secure reports whether visitors who ask for the site without TLS are redirected to TLS.
	Secure func() bool
}

// leading are the fields whose URLs are rewritten (RFC 9110, sections 10.2.2 and 8.7).
var leading = [...]string{"Location", "Content-Location"}

// Leads reports whether an answer has fields that Write may change.
func Leads(h http.Header) bool {
	return h["Location"] != nil || h["Content-Location"] != nil || h["Set-Cookie"] != nil
}

// Write rewrites the URLs in the header of an answer. If visitors know the origin by another
// name, Write also removes the origin's name from its cookies: browsers reject such cookies,
// unless the visitors' name is a subdomain of the origin's. A cookie without a name belongs to
// the host that was requested.
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

// renamed reports whether visitors know the origin by a name other than the one in the request
// to it.
func (o Outward) renamed() bool {
	inside, _ := cutPort(o.Host)
	outside, _ := cutPort(o.Visitors.Host)
	return !strings.EqualFold(inside, outside)
}

// below reports whether the visitors' name for the origin is a subdomain of the one that it
// was asked with.
func (o Outward) below() bool {
	inside, _ := cutPort(o.Host)
	outside, _ := cutPort(o.Visitors.Host)
	at := len(outside) - len(inside)
	return at > 0 && outside[at-1] == '.' && strings.EqualFold(outside[at:], inside)
}

// url rewrites one URL. It returns URLs of other sites unchanged, and also URLs that lead
// visitors from http to https.
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

// own reports whether only the origin would refer to the site like this.
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

// portless reports whether an authority is the site's except for the public port, which the
// origin does not see.
func (o Outward) portless(authority string) bool {
	outside, public := cutPort(o.Visitors.Host)
	return public != "" && strings.EqualFold(authority, outside)
}

// plain reports whether an authority in an http URL is that of the site with TLS. At the TLS
// port it always is; at the usual http port, Secure decides.
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

// cutPort splits an authority into name and port; port is empty if there is none.
func cutPort(authority string) (name, port string) {
	at := strings.LastIndexByte(authority, ':')
	if at < 0 || strings.IndexByte(authority[at:], ']') >= 0 {
		return authority, ""
	}
	return authority[:at], authority[at+1:]
}

// undomain removes a cookie's Domain attribute if its value is name, with or without a leading
// dot (RFC 6265, section 5.2.3).
func undomain(cookie, name string) string {
	parts := strings.Split(cookie, ";")
	kept := slices.DeleteFunc(parts[1:], func(attribute string) bool {
		key, value, _ := strings.Cut(attribute, "=")
		return strings.EqualFold(strings.TrimSpace(key), "Domain") &&
			strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(value), "."), name)
	})
	return strings.Join(parts[:1+len(kept)], ";")
}
