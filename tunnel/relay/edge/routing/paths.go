package routing

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/wire"
)

// fork makes a backend for each of b's paths. Each path has its own idle streams, its own
// settings for speaking to the origin, and its own state of being down.
func (t *Table) fork(b *Backend) {
	b.origin = t.originOf(b)
	for _, p := range b.Paths {
		of := &Backend{
			Agent: b.Agent, Number: b.Number, Key: b.Key, HostHeader: cmp.Or(p.HostHeader, b.HostHeader),
			Requests: b.Requests, Answers: b.Answers, Unshared: b.Unshared, HTTP2: p.HTTP2, Scheme: p.Scheme, Port: p.Port,
			whole: b, path: p.Path,
		}
		if p.Strip {
			of.prefix = (&url.URL{Path: p.Path}).EscapedPath()
		}
		of.origin = t.originOf(of)
		b.forks = append(b.forks, of)
	}
}

func (t *Table) originOf(b *Backend) *origin.Origin {
	return origin.New(origin.Config{Session: b.Agent.Session, Endpoint: b.Number, Path: b.path, HeadTime: t.cfg.OriginTime, Asks: t.cfg.Asks})
}

// tunnel returns the backend of the whole tunnel: b itself, unless b is a path's fork.
func (b *Backend) tunnel() *Backend {
	if b.whole != nil {
		return b.whole
	}
	return b
}

// name identifies b in logs among the backends of its client.
func (b *Backend) name() string { return b.Key + b.path }

// led replaces each backend of list by the one that serves a request for target: the fork of
// the longest matching path, or the backend itself. If nothing changes, it returns list
// itself.
func led(list []*Backend, target string) []*Backend {
	out := list
	for i, b := range list {
		for _, of := range b.forks {
			if _, ok := wire.MatchPath(of.path, target); ok {
				if &out[0] == &list[0] {
					out = slices.Clone(list)
				}
				out[i] = of
				break
			}
		}
	}
	return out
}

// Target returns the target to request from b's origin when a visitor asks for asked.
func (b *Backend) Target(asked string) string {
	if b.prefix == "" {
		return asked
	}
	size, _ := wire.MatchPath(b.path, asked)
	return wire.StripPath(asked, size)
}

// Inward returns r with the URLs of the site's own resources written as b's origin knows them.
// It returns r itself if nothing changes, and a copy otherwise.
func (b *Backend) Inward(r *http.Request, f *message.Way) *http.Request {
	if b.Scheme == "" || !message.NamesURLs(r) {
		return r
	}
	out := *r
	out.Header = maps.Clone(r.Header)
	message.URLs{
		From: f.Site(), To: message.Site{Scheme: b.Scheme, Host: cmp.Or(b.HostHeader, r.Host)},
		Target: func(target string) (string, bool) {
			return b.Target(target), led([]*Backend{b.tunnel()}, target)[0] == b
		},
	}.Write(&out)
	return &out
}

// Outward rewrites the URLs of b's origin in the header of an answer to r, so that they work
// for the visitor. secure is message.Outward.Secure.
func (b *Backend) Outward(h http.Header, r *http.Request, f *message.Way, secure func() bool) {
	message.Outward{
		Visitors: f.Site(), Scheme: b.Scheme, Host: cmp.Or(b.HostHeader, r.Host), Port: b.Port,
		Target: b.asked, Secure: secure,
	}.Write(h)
}

// asked returns what visitors must ask for to get what b's origin calls target. If target
// already contains the path that was stripped, it is returned unchanged.
func (b *Backend) asked(target string) string {
	if b.prefix == "" {
		return target
	}
	resource, _, _ := strings.Cut(target, "#")
	if _, ok := wire.MatchPath(b.path, resource); ok {
		return target
	}
	return b.prefix + target
}

// Strip removes the path from an HTTP/2 request, which must be a copy.
func (b *Backend) Strip(r *http.Request, asked string) {
	target, u := b.Target(asked), r.URL
	path, _, _ := strings.Cut(target, "?")
	u.Opaque, u.Path, u.RawPath = "", path, ""
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path, u.RawPath = plain, path
	}
	message.SetTarget(u, target)
	r.Header[message.PrefixHeader] = []string{b.prefix}
}

// Prefix returns the path that Target strips, as the origin is told of it; empty means none.
func (b *Backend) Prefix() string { return b.prefix }
