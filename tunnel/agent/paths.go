package agent

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TunnelPath is a path of an http or https tunnel that leads to a local service of
// its own. Zero fields take the defaults.
type TunnelPath struct {
	Path        string `json:"path"`
	LocalIP     string `json:"local_ip"` // default 127.0.0.1
	LocalPort   int    `json:"local_port"`
	LocalScheme string `json:"local_scheme"` // http (default), https, h2c
	HostHeader  string `json:"host_header"`  // empty: the tunnel's
	Strip       bool   `json:"strip"`        // the service is asked without the path
}

// local is where the path's service is.
func (p TunnelPath) local() string { return net.JoinHostPort(p.LocalIP, strconv.Itoa(p.LocalPort)) }

// normalPaths checks paths and returns them with defaults filled in, longest first.
func (a *Agent) normalPaths(paths []TunnelPath, web bool) ([]TunnelPath, *refusal.Error) {
	if len(paths) == 0 {
		return nil, nil
	}
	if !web {
		return paths, refusal.Invalid("paths", "is for http and https tunnels only")
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		names[i] = p.Path
	}
	if err := wire.CheckPaths(names); err != nil {
		return paths, refusal.Invalid("paths", "%v", err)
	}
	paths = slices.SortedFunc(slices.Values(paths), func(a, b TunnelPath) int { return wire.ComparePaths(a.Path, b.Path) })
	for i := range paths {
		p := &paths[i]
		p.LocalIP, p.LocalScheme = cmp.Or(p.LocalIP, "127.0.0.1"), cmp.Or(p.LocalScheme, schemeHTTP)
		switch {
		case p.LocalPort < 1 || p.LocalPort > 65535:
			return paths, refusal.Invalid("paths", "local_port of %s must be 1 to 65535", p.Path)
		case !slices.Contains(knownSchemes, p.LocalScheme):
			return paths, refusal.Invalid("paths", "local_scheme of %s must be one of %s", p.Path, strings.Join(knownSchemes, ", "))
		case p.HostHeader != "" && !validHostHeader(p.HostHeader):
			return paths, refusal.Invalid("paths", "host_header of %s must be a host name, with a port if need be", p.Path)
		}
		host, err := a.normalHost(p.LocalIP, p.LocalPort)
		if err != nil {
			return paths, ofPath(p.Path, err)
		}
		p.LocalIP = host
	}
	return paths, nil
}

// ofPath is an error about a field of the tunnel as one about that of its path.
func ofPath(path string, err *refusal.Error) *refusal.Error {
	return refusal.Invalid("paths", "%s of %s: %s", err.Field, path, strings.TrimPrefix(err.Message, err.Field+": "))
}

// checkHosts refuses services of spec, other than before had, whose names mean,
// today, addresses to which no tunnel may lead.
func (a *Agent) checkHosts(ctx context.Context, spec, before TunnelSpec) *refusal.Error {
	refusals := make([]*refusal.Error, 1+len(spec.Paths))
	var all sync.WaitGroup
	if spec.LocalIP != before.LocalIP || spec.LocalPort != before.LocalPort {
		all.Go(func() { refusals[0] = a.checkHost(ctx, spec.LocalIP, spec.LocalPort) })
	}
	for i, p := range spec.Paths {
		if !slices.ContainsFunc(before.Paths, func(o TunnelPath) bool { return o.local() == p.local() }) {
			all.Go(func() {
				if err := a.checkHost(ctx, p.LocalIP, p.LocalPort); err != nil {
					refusals[1+i] = ofPath(p.Path, err)
				}
			})
		}
	}
	all.Wait()
	return cmp.Or(refusals...)
}

func (a *Agent) checkHost(ctx context.Context, host string, port int) *refusal.Error {
	if ip, err := a.origins.Refused(ctx, origin.Service{Host: host, Port: port}); err != nil {
		return refusal.Invalid("local_ip", "%s is %s: %v", host, ip, err)
	}
	return nil
}

// claimPaths are the paths of a spec as the relay is told of them.
func claimPaths(paths []TunnelPath) []wire.ClaimPath {
	var out []wire.ClaimPath
	for _, p := range paths {
		out = append(out, wire.ClaimPath{Path: p.Path, Strip: p.Strip, HostHeader: p.HostHeader, HTTP2: p.LocalScheme == schemeH2C})
	}
	return out
}

// fork returns the route of a path, which is as if its service were the tunnel's.
func (r *route) fork(p TunnelPath) *route {
	of := *r
	of.path, of.forks, of.fault = p.Path, nil, new(fault)
	of.spec.LocalIP, of.spec.LocalPort, of.spec.LocalScheme = p.LocalIP, p.LocalPort, p.LocalScheme
	of.spec.HostHeader = cmp.Or(p.HostHeader, r.spec.HostHeader)
	of.service = of.spec.origin()
	if p.Strip {
		of.prefix = (&url.URL{Path: p.Path}).EscapedPath()
	}
	return &of
}

// at returns the route of a path, and r itself for none; nil if the tunnel has no
// such path.
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

// led returns the route of a request that a visitor makes, in HTTP/1.1, and the
// request as its service gets it.
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

// leads reports whether a visitor of r's path would be led to r's service now.
func (t *tunnel) leads(r *route) bool {
	now := t.route.Load().at(r.path)
	return now != nil && now.service.String() == r.service.String()
}

// cutStrays ends the connections by paths that are there no more, or lead to other
// services now.
func (t *tunnel) cutStrays() {
	t.conns.cut(func(r *route) bool { return r.path != "" && !t.leads(r) })
}
