package forward

import (
	"bytes"
	"net/url"
	"strings"
	"sync/atomic"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/origin"
	"adit/tunnel/wire"
)

// route is what forwarding needs to know about a tunnel. It never changes, except for undone.
type route struct {
	id, name string
	spec     definition.Tunnel
	secret   []string // request fields that the tunnel gives its origin
	inspect  bool
	service  origin.Service

	forks  []*route // one for each of spec's paths, in their order
	path   string   // of a fork
	prefix string   // of a fork: what its service is told was taken out of its requests; empty: nothing was

	fault  *fault
	undone *atomic.Bool // the change that it is of has not come to be; its forks have the same
}

func newRoute(id string, want definition.Tunnel) *route {
	var secret []string
	for name := range want.RequestHeaders.All() {
		secret = append(secret, name)
	}
	r := &route{
		id: id, name: want.Name, spec: want, secret: secret,
		inspect: want.Inspected(),
		service: want.Origin(),
		fault:   new(fault),
		undone:  new(atomic.Bool),
	}
	for _, p := range want.Paths {
		r.forks = append(r.forks, r.fork(p))
	}
	return r
}

// fork returns the route of a path, as if the path's service were the tunnel's.
func (r *route) fork(p definition.Path) *route {
	of := *r
	of.path, of.forks, of.fault = p.Path, nil, new(fault)
	of.spec = r.spec.Fork(p)
	of.service = of.spec.Origin()
	if p.Strip {
		of.prefix = (&url.URL{Path: p.Path}).EscapedPath()
	}
	return &of
}

// at returns the route of a path, or r itself for no path; nil if the tunnel has no such path.
func (r *route) at(path string) *route {
	if path == "" {
		return r
	}
	for _, of := range r.forks {
		if of.path == path {
			return of
		}
	}
	return nil
}

// led returns the route of a visitor's HTTP/1.1 request, and the request as its service gets it.
func (r *route) led(request []byte) (*route, []byte) {
	line, rest, _ := bytes.Cut(request, []byte("\r\n"))
	parts := strings.Split(string(line), " ")
	if len(parts) != 3 {
		return r, request
	}
	for _, of := range r.forks {
		size, ok := wire.MatchPath(of.path, parts[1])
		switch {
		case !ok:
			continue
		case of.prefix == "":
			return of, request
		}
		var out bytes.Buffer
		out.WriteString(parts[0] + " " + wire.StripPath(parts[1], size) + " " + parts[2] + "\r\n" + prefixHeader + ": " + of.prefix + "\r\n")
		for {
			field, more, ok := bytes.Cut(rest, []byte("\r\n"))
			if !ok || len(field) == 0 {
				break
			}
			if name, _, _ := bytes.Cut(field, []byte(":")); wire.PlainHeader(string(name)) != "x-forwarded-prefix" {
				out.Write(field)
				out.WriteString("\r\n")
			}
			rest = more
		}
		out.Write(rest)
		return of, out.Bytes()
	}
	return r, request
}

const prefixHeader = "X-Forwarded-Prefix"

// faultText says why the service of a tunnel, or of one of its paths, could not be reached.
func (r *route) faultText() string {
	for _, of := range append([]*route{r}, r.forks...) {
		if text := of.fault.text(); text != "" {
			if of.path != "" {
				text = of.path + ": " + text
			}
			return text
		}
	}
	return ""
}

// fault is why a local service could not be reached most recently; nil if it was reached, or if
// nobody tried.
type fault struct{ why atomic.Pointer[string] }

// note records how an attempt to reach the service ended, and reports whether that is news.
func (f *fault) note(err error) bool {
	was := f.why.Load()
	if err == nil {
		return was != nil && f.why.CompareAndSwap(was, nil)
	}
	text := err.Error()
	return (was == nil || *was != text) && f.why.CompareAndSwap(was, &text)
}

func (f *fault) text() string {
	if why := f.why.Load(); why != nil {
		return *why
	}
	return ""
}
