package message

import (
	"maps"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strings"

	"golang.org/x/net/http/httpguts"

	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

// PrefixHeader tells an origin which path was stripped from the target.
const PrefixHeader = "X-Forwarded-Prefix"

// Way describes how a request came, for the origin.
type Way struct {
	trusted bool // the peer is a configured load balancer
	Peer    netip.Addr
	host    string
	proto   string
	before  http.Header // the load balancer's own headers
	passed  string      // value of the header that lists who passed the request on
	Who     policy.Guest
}

// WhoHeaders tell an origin who the visitor is, if a policy asks.
var WhoHeaders = [...]string{"X-Forwarded-User", "X-Forwarded-Email", "X-Forwarded-Groups", "X-Forwarded-Preferred-Username"}

// Scheme returns the scheme that the visitor sees.
func (f *Way) Scheme() string {
	if v := f.before["X-Forwarded-Proto"]; len(v) > 0 && (v[0] == "http" || v[0] == "https") {
		return v[0]
	}
	return f.proto
}

// Site returns the site as the visitor asked for it. If there are several load balancers,
// X-Forwarded-Host may list several hosts and does not say which one that is.
func (f *Way) Site() Site {
	if v := f.before["X-Forwarded-Host"]; len(v) == 1 {
		if _, one := Host(v[0]); one {
			return Site{f.Scheme(), v[0]}
		}
	}
	return Site{f.Scheme(), f.host}
}

var forwardHeaders = []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip"}

// WayOf returns the Way of a request. name is the relay's. secure says that TLS ended here,
// and trusted that the peer is a load balancer.
func WayOf(r *http.Request, name string, peer netip.Addr, trusted, secure bool) Way {
	f := Way{trusted: trusted, Peer: peer, host: r.Host, proto: "http", passed: passedBy(r, name)}
	if secure {
		f.proto = "https"
	}
	if f.trusted {
		f.before = make(http.Header)
		for _, name := range forwardHeaders {
			if v := r.Header.Values(name); len(v) > 0 {
				f.before[name] = v
			}
		}
	}
	return f
}

// Client returns the address by which policies and logs know the visitor: the peer's or, if
// the peer is a load balancer, the last address in X-Forwarded-For that is not a load
// balancer's.
func Client(r *http.Request, peer netip.Addr, trusted func(netip.Addr) bool) netip.Addr {
	if !trusted(peer) {
		return peer
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		a, ok := hopAddr(strings.TrimSpace(hops[i]))
		if !ok {
			break
		}
		if !trusted(a) {
			return a
		}
		peer = a
	}
	return peer
}

// hopAddr parses an address in X-Forwarded-For. Some load balancers append the port, or put
// IPv6 addresses in brackets.
func hopAddr(text string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		withPort, errPort := netip.ParseAddrPort(text)
		if errPort != nil {
			return netip.Addr{}, false
		}
		a = withPort.Addr()
	}
	return a.Unmap().WithZone(""), true
}

// Rewrite produces the request for the origin. net/http/httputil has already removed the
// hop-by-hop and forwarding headers.
func Rewrite(p *httputil.ProxyRequest, target string, f *Way) {
	p.Out.URL.Scheme = "http"
	p.Out.URL.Host = "origin" // streams need no address
	SetTarget(p.Out.URL, target)
	p.Out.Host = p.In.Host
	for name := range p.Out.Header {
		if strings.HasPrefix(name, "X-Forwarded-") && !f.trusted || disguised(name) {
			delete(p.Out.Header, name)
		}
	}
	p.Out.Header.Del("X-Real-Ip")
	p.Out.Header.Del("Proxy")
	p.Out.Header.Del("Connection") // what is left of it asks for a change of protocol
	p.Out.Header.Del("Upgrade")
	connection := listOf(p.In.Header["Connection"])
	maps.DeleteFunc(p.Out.Trailer, func(name string, _ []string) bool { return !trails(name, connection) })
	f.each(p.Out.Header.Set)
}

// each calls set with the headers that describe the visitor to an origin. In headers that list
// the way, a load balancer's entries come first.
func (f *Way) each(set func(name, value string)) {
	list := func(name, own string) {
		if f.trusted {
			if v := f.before[name]; len(v) > 0 {
				own = strings.Join(v, ", ") + ", " + own
			}
		}
		set(name, own)
	}
	one := func(name, own string) {
		if f.trusted {
			if v := f.before[name]; len(v) > 0 {
				own = v[0]
			}
		}
		if own != "" {
			set(name, own)
		}
	}
	list("X-Forwarded-For", f.Peer.String())
	one("X-Forwarded-Host", f.host)
	one("X-Forwarded-Proto", f.proto)
	list("Forwarded", forwardedElement(f))
	one("X-Real-Ip", "")
	set(loopHeader, f.passed)
	if f.Who.Name() != "" {
		f.name(set)
	}
}

// name calls set with the visitor's identity, as far as it fits into headers.
func (f *Way) name(set func(name, value string)) {
	values := [len(WhoHeaders)]string{f.Who.User.Name}
	if i := f.Who.Identity; i != nil {
		values = [...]string{i.Subject, i.Email, strings.Join(i.Groups, ","), i.Name}
	} else if c := f.Who.Certificate; c != nil {
		values = [...]string{c.Label(), c.Email(), "", ""}
	}
	for i, value := range values {
		if value != "" && httpguts.ValidHeaderFieldValue(value) {
			set(WhoHeaders[i], value)
		}
	}
}

// forwarding reports whether a visitor's header is dropped because it is, or could be mistaken
// for, one that each sets.
func forwarding(name string, trusted bool) bool {
	switch name {
	case "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip", loopHeader,
		"Proxy": // CGI turns it into HTTP_PROXY, which programs obey (httpoxy)
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded-") && !trusted || disguised(name)
}

// TakePaths removes the fields that tell an origin the path as it was requested, before a
// proxy such as IIS rewrote it. Some frameworks trust them.
func TakePaths(h http.Header) {
	for name := range h {
		switch wire.PlainHeader(name) {
		case "x-original-url", "x-rewrite-url":
			delete(h, name)
		}
	}
}

// disguised reports whether name is a forwarding header, or one that says where a request
// ends, spelled with underscores or the like instead of hyphens. CGI (RFC 3875, section
// 4.1.18) and its successors cannot tell it from the real header. No load balancer spells
// headers that way.
func disguised(name string) bool {
	usual := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-'
	}
	if strings.IndexFunc(name, func(c rune) bool { return !usual(c) }) < 0 {
		return false
	}
	plain := strings.ToLower(strings.Map(func(c rune) rune {
		if usual(c) {
			return c
		}
		return '-'
	}, name))
	switch plain {
	case "x-real-ip", "content-length", "transfer-encoding":
		return true
	}
	return strings.HasPrefix(plain, "x-forwarded-")
}

// forwardedElement returns the element defined in RFC 7239. IPv6 addresses are quoted and in
// brackets (§6), and hosts with a port are quoted.
func forwardedElement(f *Way) string {
	node := f.Peer.String()
	if f.Peer.Is6() {
		node = `"[` + node + `]"`
	}
	host := f.host
	if strings.ContainsAny(host, ":[]") {
		host = `"` + host + `"`
	}
	return "for=" + node + ";host=" + host + ";proto=" + f.proto
}
