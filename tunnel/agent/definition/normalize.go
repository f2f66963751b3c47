package definition

import (
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"adit/internal/wildcard"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

var (
	knownTypes = []string{wire.TypeHTTP, wire.TypeHTTPS, wire.TypeTLS, wire.TypeTCP, wire.TypeUDP}
	knownModes = []string{wire.ModeStandard, wire.ModeBalanced, wire.ModePrivate}
	// knownSchemes are the ways to speak HTTP to an origin.
	knownSchemes = []string{SchemeHTTP, SchemeHTTPS, SchemeH2C}
)

const (
	maxName   = 64 // runes
	maxDomain = 253
)

// Normalize checks spec and returns it with defaults filled in and names in canonical form. It does
// not resolve names: where a name leads is checked when it is dialled.
func (spec Tunnel) Normalize(guard origin.Guard) (Tunnel, *refusal.Error) {
	switch {
	case spec.Type != "":
	case spec.Mode == wire.ModePrivate:
		spec.Type = wire.TypeTCP
	default:
		spec.Type = wire.TypeHTTPS
	}
	if spec.Mode == "" {
		spec.Mode = wire.ModeStandard
	}
	if spec.LocalIP == "" {
		spec.LocalIP = "127.0.0.1"
	}
	web := spec.Web()
	port := spec.Type == wire.TypeTCP || spec.Type == wire.TypeUDP
	if web && spec.LocalScheme == "" {
		spec.LocalScheme = SchemeHTTP
	}
	if spec.Inspect == nil {
		yes := true
		spec.Inspect = &yes
	}
	switch {
	case !slices.Contains(knownTypes, spec.Type):
		return spec, refusal.Invalid("type", "%q is not known; it must be one of %s", refusal.Clip(spec.Type), strings.Join(knownTypes, ", "))
	case spec.Held && !spec.Ephemeral:
		return spec, refusal.Invalid("held", "is for ephemeral tunnels only; other tunnels stay when the program that created them ends")
	case !slices.Contains(knownModes, spec.Mode):
		return spec, refusal.Invalid("mode", "%q is not known; it must be one of %s", refusal.Clip(spec.Mode), strings.Join(knownModes, ", "))
	case spec.LocalPort < 1 || spec.LocalPort > 65535:
		return spec, refusal.Invalid("local_port", "must be 1 to 65535")
	case !web && spec.LocalScheme != "":
		return spec, refusal.Invalid("local_scheme", "is for http and https tunnels only")
	case web && !slices.Contains(knownSchemes, spec.LocalScheme):
		return spec, refusal.Invalid("local_scheme", "must be one of %s", strings.Join(knownSchemes, ", "))
	case spec.Numbered() && spec.Domain != "":
		return spec, refusal.Invalid("domain", "is not for tcp and udp tunnels; they have a remote_port")
	case !port && spec.RemotePort != 0:
		return spec, refusal.Invalid("remote_port", "is for tcp and udp tunnels only")
	case spec.RemotePort < 0 || spec.RemotePort > 65535:
		return spec, refusal.Invalid("remote_port", "must be 1 to 65535, or 0 to let the relay choose")
	case !web && spec.HostHeader != "":
		return spec, refusal.Invalid("host_header", "is for http and https tunnels only")
	case spec.HostHeader != "" && !validHostHeader(spec.HostHeader):
		return spec, refusal.Invalid("host_header", "must be a host name, with or without a port")
	case !slices.Contains([]string{"", "v1", "v2"}, spec.ProxyProtocol):
		return spec, refusal.Invalid("proxy_protocol", "must be v1 or v2, or empty for none")
	case spec.ProxyProtocol != "" && spec.Type == wire.TypeUDP:
		return spec, refusal.Invalid("proxy_protocol", "is not for udp tunnels")
	}
	if err := checkName(spec.Name); err != nil {
		return spec, err
	}
	if err := checkHeaders(spec, web); err != nil {
		return spec, err
	}
	var err *refusal.Error
	if spec.Policy, err = normalPolicy(spec.Policy); err != nil {
		return spec, err
	}
	host, err := normalHost(guard, spec.LocalIP, spec.LocalPort)
	if err != nil {
		return spec, err
	}
	spec.LocalIP = host
	if spec.Paths, err = normalPaths(guard, spec.Paths, web); err != nil {
		return spec, err
	}
	if spec, err = checkPrivate(spec); err != nil {
		return spec, err
	}
	if spec.Domain != "" {
		domain, err := normalDomain(spec.Domain)
		if err != nil {
			return spec, err
		}
		spec.Domain = domain
	}
	return spec, nil
}

func checkName(name string) *refusal.Error {
	if utf8.RuneCountInString(name) > maxName {
		return refusal.Invalid("name", "must have at most %d characters", maxName)
	}
	if !utf8.ValidString(name) || strings.TrimSpace(name) != name {
		return refusal.Invalid("name", "must not begin or end with white space")
	}
	for _, r := range name {
		if !unicode.IsPrint(r) {
			return refusal.Invalid("name", "must have printable characters only")
		}
	}
	return nil
}

// localNames is idna.Lookup for names in the local network, which may contain underscores, as those
// of containers do.
var localNames = idna.New(idna.MapForLookup(), idna.BidiRule(), idna.StrictDomainName(false))

func normalHost(guard origin.Guard, host string, port int) (string, *refusal.Error) {
	host = strings.TrimSpace(host)
	if inner, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(inner, "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		if err := guard.Check(ip, port); err != nil {
			return "", refusal.Invalid("local_ip", "%v", err)
		}
		if !ip.Is4In6() {
			return ip.String(), nil
		}
		return ip.Unmap().String(), nil
	}
	name, err := localNames.ToASCII(strings.TrimSuffix(host, "."))
	if origin.MetadataName(name) {
		return "", refusal.Invalid("local_ip", "%s is a name at which clouds give out credentials; adit does not publish it", refusal.Clip(host))
	}
	// A last label of digits is an IPv4 address in a spelling that some resolvers accept
	// (2852039166, 0xa9fea9fe), not a name.
	if err != nil || name == "" || len(name) > maxDomain || numericTail(name) || !plainLabels(name, true) {
		return "", refusal.Invalid("local_ip", "%q is neither an IP address nor a host name", refusal.Clip(host))
	}
	name = strings.ToLower(name)
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		if err := guard.Check(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port); err != nil {
			return "", refusal.Invalid("local_ip", "%v", err)
		}
	}
	return name, nil
}

func numericTail(name string) bool {
	tail := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(strings.ToLower(tail), "0x"); ok {
		tail = strings.Trim(hex, "abcdef0123456789")
		return tail == ""
	}
	return strings.Trim(tail, "0123456789") == ""
}

// plainLabels reports whether each label has 1 to 63 letters, digits and inner hyphens; underscores
// too if they are allowed, as in local names.
func plainLabels(name string, underscores bool) bool {
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for i := range len(label) {
			c := label[i]
			if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' && underscores) {
				return false
			}
		}
	}
	return true
}

// normalDomain returns a full name, a label, or the wildcard of either, in lower case and ASCII.
func normalDomain(domain string) (string, *refusal.Error) {
	if utf8.RuneCountInString(domain) > maxDomain {
		return "", refusal.Invalid("domain", "must have at most %d characters", maxDomain)
	}
	base, all := wildcard.Base(strings.TrimSuffix(strings.TrimSpace(domain), "."))
	name, err := idna.Lookup.ToASCII(base)
	if err != nil || name == "" || len(name) > maxDomain || !plainLabels(name, false) {
		return "", refusal.Invalid("domain", "%q is not a domain name, such as shop or shop.example.com; for all names below one, write *.shop or *.shop.example.com", refusal.Clip(domain))
	}
	if numericTail(name) {
		return "", refusal.Invalid("domain", "%q is an address, not a domain name", refusal.Clip(domain))
	}
	name = strings.ToLower(name)
	if all {
		return "*." + name, nil
	}
	return name, nil
}

func validHostHeader(h string) bool {
	host := h
	if inner, port, err := net.SplitHostPort(h); err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return false
		}
		host = inner
	} else if inner, ok := strings.CutPrefix(h, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Zone() == ""
	}
	return len(host) <= maxDomain && plainLabels(host, true)
}

func checkHeaders(spec Tunnel, web bool) *refusal.Error {
	for _, of := range []struct {
		field   string
		changes wire.HeaderChanges
		in      wire.Direction
	}{{"request_headers", spec.RequestHeaders, wire.Requests}, {"response_headers", spec.ResponseHeaders, wire.Responses}} {
		if !web && !of.changes.IsZero() {
			return refusal.Invalid(of.field, "is for http and https tunnels only")
		}
		if err := of.changes.Check(of.in); err != nil {
			return refusal.Invalid(of.field, "%v", err)
		}
	}
	return nil
}
