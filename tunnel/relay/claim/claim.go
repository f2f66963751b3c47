// Package claim defines which public faces agents may ask for, as far as a claim itself
// shows, and how nodes describe claims to each other. What a client may have is decided
// by the packages above it.
package claim

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"adit/internal/visible"
	"adit/tunnel/relay/names"
	"adit/tunnel/wire"
)

// Check returns a *wire.Problem if something in a claim is not valid. It also converts
// the claim to the form that the relay uses.
func Check(c *wire.Claim) error {
	switch c.Type {
	case wire.TypeHTTP, wire.TypeHTTPS, wire.TypeTLS:
		if c.RemotePort != 0 {
			return wire.Invalid("remote_port", "a tunnel of type %s has no public port of its own; give it none", c.Type)
		}
	case wire.TypeTCP, wire.TypeUDP:
		if c.RemotePort < 0 || c.RemotePort > 65535 {
			return wire.Invalid("remote_port", "the port must be 1 to 65535")
		}
		if c.Mode != wire.ModePrivate {
			c.Domain = ""
		}
	default:
		return wire.Invalid("type", "the relay knows the types http, https, tls, tcp and udp")
	}
	if c.Mode != wire.ModeStandard && c.Mode != wire.ModeBalanced && c.Mode != wire.ModePrivate {
		return wire.Invalid("mode", "the relay knows the modes standard, balanced and private")
	}
	if len(c.Name) > 128 {
		return wire.Invalid("name", "the name has at most 128 bytes")
	}
	c.Domain = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(c.Domain), "."))
	if c.HostHeader != "" && !validHost(c.HostHeader) {
		return wire.Invalid("host_header", "%q is not a host; write a name or an address, such as app.local or 192.0.2.1:8080", visible.Clip(c.HostHeader, 128))
	}
	keepScheme(&c.Scheme)
	for i := range c.Paths {
		keepScheme(&c.Paths[i].Scheme)
	}
	return Leads(c)
}

// keepScheme clears a scheme that is not one of HTTP's. No URLs are rewritten with it
// then.
func keepScheme(scheme *string) {
	if *scheme != "http" && *scheme != "https" {
		*scheme = ""
	}
}

// Leads returns a *wire.Problem if the edge could not serve a claim, and sorts the
// claim's paths. It is the part of Check that also applies to claims from other nodes,
// which may run another version.
func Leads(c *wire.Claim) error {
	if err := checkHeaders(c); err != nil {
		return err
	}
	if err := checkPaths(c); err != nil {
		return err
	}
	return checkPrivate(c)
}

// checkPaths returns an error if the edge cannot serve a claim's paths, and sorts them.
func checkPaths(c *wire.Claim) error {
	if len(c.Paths) == 0 {
		c.Paths = nil
		return nil
	}
	if c.Type != wire.TypeHTTP && c.Type != wire.TypeHTTPS {
		return wire.Invalid("paths", "a tunnel of type %s has no paths; give it none", c.Type)
	}
	names := make([]string, len(c.Paths))
	for i, p := range c.Paths {
		names[i] = p.Path
	}
	if err := wire.CheckPaths(names); err != nil {
		return wire.Invalid("paths", "paths: %v", err)
	}
	for _, p := range c.Paths {
		if p.HostHeader != "" && !validHost(p.HostHeader) {
			return wire.Invalid("paths", "paths: host_header of %s: %q is not a host; write a name or an address, such as app.local or 192.0.2.1:8080", p.Path, visible.Clip(p.HostHeader, 128))
		}
	}
	c.Paths = slices.SortedFunc(slices.Values(c.Paths), func(a, b wire.ClaimPath) int { return wire.ComparePaths(a.Path, b.Path) })
	return nil
}

// checkHeaders returns an error if the edge cannot make a claim's changes to header
// fields.
func checkHeaders(c *wire.Claim) error {
	web := c.Type == wire.TypeHTTP || c.Type == wire.TypeHTTPS
	for _, of := range []struct {
		field   string
		changes wire.HeaderChanges
		in      wire.Direction
	}{{"request_headers", c.RequestHeaders, wire.Requests}, {"response_headers", c.ResponseHeaders, wire.Responses}} {
		if !web && !of.changes.IsZero() {
			return wire.Invalid(of.field, "a tunnel of type %s has no headers to change; give it no changes of headers", c.Type)
		}
		if err := of.changes.Check(of.in); err != nil {
			return wire.Invalid(of.field, "%s: %v", of.field, err)
		}
	}
	return nil
}

// maxPortText is the length of the longest port.
const maxPortText = len("65535")

// validHost reports whether text is a name or an address, optionally with a port.
func validHost(text string) bool {
	host := text
	if inner, port, err := net.SplitHostPort(text); err == nil {
		// A number may have any number of leading zeros, but messages between nodes are
		// limited in length.
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || len(port) > maxPortText {
			return false
		}
		host = inner
	} else if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	return net.ParseIP(host) != nil || names.Valid(strings.ToLower(host))
}
