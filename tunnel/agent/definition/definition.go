// Package definition describes what a user declares: a tunnel, with its type, mode, local service
// and wanted public address, or a visit to another client's private tunnel. It validates
// declarations and normalises them. It is values in, values out: what becomes of them is left to
// package agent.
package definition

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"adit/tunnel/agent/origin"
	"adit/tunnel/wire"
)

// Tunnel is what a user wants. Zero fields take the defaults.
type Tunnel struct {
	Type        string `json:"type,omitempty"`     // default https
	Mode        string `json:"mode,omitempty"`     // default standard
	LocalIP     string `json:"local_ip,omitempty"` // address or host name; default 127.0.0.1
	LocalPort   int    `json:"local_port"`
	Domain      string `json:"domain,omitempty"`       // full name or one label; of a private tunnel its name; empty: the relay gives one
	Name        string `json:"name,omitempty"`         // default: type and port
	LocalScheme string `json:"local_scheme,omitempty"` // http (default), https, h2c; of http and https tunnels
	RemotePort  int    `json:"remote_port,omitempty"`  // tcp, udp; 0: the relay gives one
	HostHeader  string `json:"host_header,omitempty"`  // http, https: the Host that the origin sees
	// http, https: the header fields that the relay's edge changes in requests and in the origin's
	// responses.
	RequestHeaders  wire.HeaderChanges `json:"request_headers,omitzero"`
	ResponseHeaders wire.HeaderChanges `json:"response_headers,omitzero"`
	Paths           []Path             `json:"paths,omitempty"` // http, https
	// Visitors names the relay's clients that may visit a private tunnel, in addition to agents
	// with the same token as this one; "*" means all.
	Visitors []string `json:"visitors,omitempty"`
	// Policy is the initial policy, as a document in the relay's format; if empty, the relay's own
	// applies. Its passwords are hashed. It is never shown.
	Policy        json.RawMessage `json:"policy,omitempty"`
	ProxyProtocol string          `json:"proxy_protocol,omitempty"` // v1 or v2 sent to the origin; empty: none
	Inspect       *bool           `json:"inspect,omitempty"`        // default true
	Ephemeral     bool            `json:"ephemeral,omitempty"`      // gone when the daemon ends
	Held          bool            `json:"held,omitempty"`           // of an ephemeral one: gone 15 s after nobody holds it any more
}

// Path is a path of an http or https tunnel that leads to its own local service. Zero fields take
// the defaults.
type Path struct {
	Path        string `json:"path"`
	LocalIP     string `json:"local_ip"` // default 127.0.0.1
	LocalPort   int    `json:"local_port"`
	LocalScheme string `json:"local_scheme"` // http (default), https, h2c
	HostHeader  string `json:"host_header"`  // empty: the tunnel's
	Strip       bool   `json:"strip"`        // the service is asked without the path
}

// Headers returns the header changes described by fields, which maps names to values; an empty
// value removes the field.
func Headers(fields map[string]string) wire.HeaderChanges { return wire.ChangeHeaders(fields) }

// How to speak HTTP to an origin (Tunnel.LocalScheme).
const (
	SchemeHTTP  = "http"
	SchemeHTTPS = "https"
	SchemeH2C   = "h2c" // HTTP/2 without TLS, as its clients know beforehand (RFC 9113, section 3.3)
)

// Web reports whether the tunnel carries HTTP.
func (spec Tunnel) Web() bool { return spec.Type == wire.TypeHTTP || spec.Type == wire.TypeHTTPS }

// Private reports whether the tunnel's visitors are other clients of the relay.
func (spec Tunnel) Private() bool { return spec.Mode == wire.ModePrivate }

// Numbered reports whether a tunnel is published by a public port of its own rather than by a name.
func (spec Tunnel) Numbered() bool {
	return (spec.Type == wire.TypeTCP || spec.Type == wire.TypeUDP) && !spec.Private()
}

// Inspected reports whether the inspector sees the tunnel's traffic.
func (spec Tunnel) Inspected() bool { return spec.Inspect == nil || *spec.Inspect }

// Origin returns the local service that the tunnel leads to.
func (spec Tunnel) Origin() origin.Service {
	return origin.Service{Host: spec.LocalIP, Port: spec.LocalPort, TLS: spec.LocalScheme == SchemeHTTPS, Known: spec.HostHeader}
}

// Fork returns the tunnel as visitors of one of its paths see it: with the path's service in place
// of its own.
func (spec Tunnel) Fork(p Path) Tunnel {
	spec.LocalIP, spec.LocalPort, spec.LocalScheme = p.LocalIP, p.LocalPort, p.LocalScheme
	spec.HostHeader = cmp.Or(p.HostHeader, spec.HostHeader)
	return spec
}

// Claim returns the claim to make at the relay.
func (spec Tunnel) Claim() wire.Claim {
	c := wire.Claim{
		Type: spec.Type, Mode: spec.Mode, Domain: spec.Domain, RemotePort: spec.RemotePort,
		Name: spec.Name, HostHeader: spec.HostHeader, Ephemeral: spec.Ephemeral,
		RequestHeaders: spec.RequestHeaders, ResponseHeaders: spec.ResponseHeaders,
		Paths: claimPaths(spec.Paths), Visitors: spec.Visitors, Policy: spec.Policy, Unshared: spec.ProxyProtocol != "", HTTP2: spec.LocalScheme == SchemeH2C,
		Scheme: urlScheme(spec.LocalScheme),
	}
	if spec.Web() {
		c.Port = spec.LocalPort
	}
	return c
}

// urlScheme returns the URL scheme of a service with the given LocalScheme; empty for none.
func urlScheme(local string) string {
	if local == SchemeH2C {
		return SchemeHTTP
	}
	return local
}

// claimPaths returns the paths of a spec in the form that the relay is told.
func claimPaths(paths []Path) []wire.ClaimPath {
	var out []wire.ClaimPath
	for _, p := range paths {
		out = append(out, wire.ClaimPath{Path: p.Path, Strip: p.Strip, HostHeader: p.HostHeader, HTTP2: p.LocalScheme == SchemeH2C, Scheme: urlScheme(p.LocalScheme), Port: p.LocalPort})
	}
	return out
}

// Equal reports whether two normalised specs are the same.
func (spec Tunnel) Equal(other Tunnel) bool { return reflect.DeepEqual(spec, other) }

// MovedFrom reports whether spec asks for a different public address than before.
func (spec Tunnel) MovedFrom(before Tunnel) bool {
	return spec.Type != before.Type || spec.Private() != before.Private() || spec.Domain != before.Domain || spec.RemotePort != before.RemotePort
}

// ServesAlike reports whether a stream for requests that was opened under one spec may still be
// used under the other. The relay keeps streams for later requests and drops them on a new claim;
// if they were kept, the inspector would go on seeing a tunnel whose inspection has been turned
// off.
func (spec Tunnel) ServesAlike(other Tunnel) bool {
	return *spec.Inspect == *other.Inspect && spec.LocalScheme == other.LocalScheme && spec.ProxyProtocol == other.ProxyProtocol &&
		slices.Equal(spec.Paths, other.Paths)
}

// SameName reports whether two names may denote the same one: either may be a label under the
// relay's domain.
func SameName(one, other string) bool {
	return one == other || strings.HasPrefix(one, other+".") || strings.HasPrefix(other, one+".")
}
