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

// fork makes a backend for each of b's paths: what it keeps between requests, how
// its origin is spoken to, and whether that is down is each one's own.
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

// tunnel is the backend of the whole tunnel, which is b's own unless that is one of
// a path.
func (b *Backend) tunnel() *Backend {
	if b.whole != nil {
		return b.whole
	}
	return b
}

// name tells b from the others of its client in a log.
func (b *Backend) name() string { return b.Key + b.path }

// led returns where each of list has a request for target go: to the longest of its
// paths that has it, or to its own origin. It is list itself if that is so for all.
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

// Target is what b's origin is asked for in place of what the visitor asked for.
func (b *Backend) Target(asked string) string {
	if b.prefix == "" {
		return asked
	}
	size, _ := wire.MatchPath(b.path, asked)
	return wire.StripPath(asked, size)
}

// Inward returns a request as it names its site's resources to b's origin: r itself if
// that is as the visitor named them, else a copy.
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

// Outward writes in the header of an answer to r what names the site of b's origin as the
// visitor knows that. Secure is that of message.Outward.
func (b *Backend) Outward(h http.Header, r *http.Request, f *message.Way, secure func() bool) {
	message.Outward{
		Visitors: f.Site(), Scheme: b.Scheme, Host: cmp.Or(b.HostHeader, r.Host), Port: b.Port,
		Target: b.asked, Secure: secure,
	}.Write(h)
}

// asked is what visitors ask for to have what b's origin calls target: an origin that
// knows which path was taken out of that has it already.
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

// Strip takes the path out of a request by HTTP/2, which is a copy.
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

// Prefix is what Target takes out of what is asked for, as it is told to the origin;
// empty: nothing.
func (b *Backend) Prefix() string { return b.prefix }
