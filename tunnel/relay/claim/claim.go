// Package claim says what agents may ask for of public faces, as far as a claim by
// itself shows it, and how nodes tell each other of claims. What a client may have is
// decided above it.
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

// Check says what of a claim may not be, a *wire.Problem, and brings the rest into the
// form in which the relay has it.
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

// keepScheme empties a scheme that is not one of HTTP: no URLs are written by it then.
func keepScheme(scheme *string) {
	if *scheme != "http" && *scheme != "https" {
		*scheme = ""
	}
}

// Leads says what of a claim the edge could not serve, a *wire.Problem, and sorts its
// paths. It is the part of Check that holds for claims of other nodes, which may be of
// another version.
func Leads(c *wire.Claim) error {
	if err := checkHeaders(c); err != nil {
		return err
	}
	if err := checkPaths(c); err != nil {
		return err
	}
	return checkPrivate(c)
}

// checkPaths says which paths of a claim the edge cannot lead, and sorts them.
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

// checkHeaders says which header fields of a claim the edge cannot change.
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

// maxPortText is the longest port.
const maxPortText = len("65535")

// validHost reports whether text is a name or an address, with a port if need be.
func validHost(text string) bool {
	host := text
	if inner, port, err := net.SplitHostPort(text); err == nil {
		// Zeros may stand before a number without end, and a line between nodes has an end.
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || len(port) > maxPortText {
			return false
		}
		host = inner
	} else if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	return net.ParseIP(host) != nil || names.Valid(strings.ToLower(host))
}
