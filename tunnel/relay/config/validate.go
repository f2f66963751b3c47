package config

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"adit/internal/netblock"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/names"
)

// proxyHeaders maps the values of proxy_protocol.
var proxyHeaders = map[string]visitor.ProxyHeader{
	"": visitor.ProxyAccepted, "accept": visitor.ProxyAccepted, "require": visitor.ProxyRequired, "off": visitor.ProxyOff,
}

// Proxy returns the meaning of proxy_protocol, which must have been validated.
func (c Config) Proxy() visitor.ProxyHeader { return proxyHeaders[c.ProxyProtocol] }

// KeyError is the first fault of a configuration.
type KeyError struct{ Key, Message string }

func (e *KeyError) Error() string { return e.Key + ": " + e.Message }

// atKey returns an error about the value of a key.
func atKey(name, format string, args ...any) error {
	return &KeyError{name, fmt.Sprintf(format, args...)}
}

// Validate returns a KeyError for the first key whose value cannot be used. It also
// normalises names for comparison: in lower case, without a trailing dot, and in their
// xn-- form if they use other scripts.
func (c *Config) Validate() error {
	c.Domain, c.PublicHost, c.SignInHost = compared(c.Domain), compared(c.PublicHost), compared(c.SignInHost) // no client may claim them in any spelling
	for _, check := range []func() error{
		c.validateNames, c.validateListeners, c.validateProxies, c.validateResolvers, c.validateSignIn, c.Limits.validate, c.NATS.validate, c.Nodes.validate,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	if c.ACME != nil {
		if name, fault := c.ACME.validate(); name != "" {
			return atKey(name, "%s", fault)
		}
	}
	return nil
}

// compared normalises a name for comparison. Anything that is not a name is returned to
// be refused later.
func compared(name string) string {
	name = strings.TrimSuffix(name, ".")
	if ascii, err := idna.Lookup.ToASCII(name); err == nil && ascii != "" {
		name = ascii
	}
	return strings.ToLower(name)
}

func (c *Config) validateNames() error {
	switch {
	case c.Domain == "":
		return atKey("domain", "is required: the name under which tunnels get theirs; set it in relay.toml, or as --domain tunnel.example.com")
	case !names.Valid(c.Domain):
		return atKey("domain", "%q is not a domain name; write the name alone, as tunnel.example.com", c.Domain)
	case c.DataDir == "":
		return atKey("data_dir", "is required: the folder that the relay keeps its data in")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return atKey("tls_key", "tls_cert and tls_key go together: set both, or neither")
	case c.PublicHost != "" && net.ParseIP(c.PublicHost) == nil && !names.Valid(c.PublicHost):
		return atKey("public_host", "%q is not a host name or address; write it alone, as tunnel.example.com: the port is that of tunnel_listen", c.PublicHost)
	}
	if c.PagesDir != "" {
		if info, err := os.Stat(c.PagesDir); err != nil || !info.IsDir() {
			return atKey("pages_dir", "%s is not a folder that can be read", c.PagesDir)
		}
	}
	return nil
}

func (c *Config) validateListeners() error {
	for _, l := range []struct{ name, addr string }{
		{"tunnel_listen", c.TunnelListen},
		{"edge_http_listen", c.EdgeHTTPListen},
		{"edge_https_listen", c.EdgeHTTPSListen},
		{"console_listen", c.ConsoleListen},
	} {
		if _, port, err := net.SplitHostPort(l.addr); err != nil {
			return atKey(l.name, "%q is not host:port, as 127.0.0.1:8080, nor a port alone, as :8080", l.addr)
		} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return atKey(l.name, "the port must be 0 to 65535")
		}
	}
	for _, p := range []struct {
		name string
		port int
	}{{"public_http_port", c.PublicHTTPPort}, {"public_https_port", c.PublicHTTPSPort}, {"public_tunnel_port", c.PublicTunnelPort}} {
		if p.port < 0 || p.port > 65535 {
			return atKey(p.name, "must be 1 to 65535, or 0 for the port that the relay listens at")
		}
	}
	for _, p := range []struct{ name, text string }{{"tcp_ports", c.TCPPorts}, {"udp_ports", c.UDPPorts}} {
		if _, err := ParsePorts(p.text); err != nil {
			return atKey(p.name, "%v", err)
		}
	}
	return nil
}

func (c *Config) validateProxies() error {
	if _, ok := proxyHeaders[c.ProxyProtocol]; !ok {
		return atKey("proxy_protocol", "%q must be accept, require or off", c.ProxyProtocol)
	}
	if c.ProxyProtocol == "require" && len(c.TrustedProxies) == 0 {
		return atKey("proxy_protocol", "require needs trusted_proxies: headers are read from those alone")
	}
	for i, p := range c.TrustedProxies {
		if _, err := netblock.Parse(p); err != nil {
			return atKey(fmt.Sprintf("trusted_proxies[%d]", i), "%q is not an address or CIDR, as 192.0.2.1 or 10.0.0.0/8", p)
		}
	}
	return nil
}

func (c *Config) validateResolvers() error {
	for i, server := range c.Domains.Resolvers {
		if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
			return atKey(fmt.Sprintf("domains.resolvers[%d]", i), "%q is not host:port, as 192.0.2.53:53", server)
		}
	}
	return nil
}

func (l Limits) validate() error {
	for _, d := range []struct{ name, text string }{
		{"limits.header_time", l.HeaderTime},
		{"limits.idle_time", l.IdleTime},
		{"limits.stream_idle", l.StreamIdle},
		{"limits.origin_time", l.OriginTime},
		{"limits.udp_idle", l.UDPIdle},
	} {
		if v, err := time.ParseDuration(d.text); d.text != "" && (err != nil || v <= 0) {
			return atKey(d.name, "%q is not a duration, as 30s", d.text)
		}
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"limits.sessions", int64(l.Sessions)},
		{"limits.sessions_per_client", int64(l.SessionsPerClient)},
		{"limits.unnamed_per_address", int64(l.UnnamedPerAddress)},
		{"limits.tunnels_per_session", int64(l.TunnelsPerSession)},
		{"limits.claims_per_client", int64(l.ClaimsPerClient)},
		{"limits.connections", int64(l.Connections)},
		{"limits.connections_per_address", int64(l.ConnectionsPerAddress)},
		{"limits.header_bytes", int64(l.HeaderBytes)},
		{"limits.udp_flows", int64(l.UDPFlows)},
		{"limits.udp_amplification", int64(l.UDPAmplification)},
		{"limits.access_days", int64(l.AccessDays)},
		{"limits.access_bytes", l.AccessBytes},
	} {
		if n.value < 0 {
			return atKey(n.name, "must not be negative")
		}
	}
	return nil
}

func (n NATS) validate() error {
	switch {
	case n.Replicas < 0:
		return atKey("nats.replicas", "must not be negative")
	case (n.Cert == "") != (n.Key == ""):
		return atKey("nats.key", "nats.cert and nats.key go together")
	case n.SecretFile != "" && len(n.URLs) == 0:
		return atKey("nats.secret_file", "is for an external NATS; set nats.urls too")
	}
	return nil
}

func (n Nodes) validate() error {
	for _, a := range []struct {
		name, addr string
		free       bool // may have port 0 and no host
	}{{"nodes.listen", n.Listen, true}, {"nodes.address", n.Address, false}, {"nodes.agent_address", n.AgentAddress, false}} {
		if a.addr == "" {
			continue
		}
		host, port, err := net.SplitHostPort(a.addr)
		number, badPort := strconv.ParseUint(port, 10, 16)
		if err != nil || badPort != nil || !a.free && (host == "" || number == 0) {
			return atKey(a.name, "%q is not host:port", a.addr)
		}
	}
	if v, err := time.ParseDuration(n.Leave); n.Leave != "" && (err != nil || v < 0 || v > time.Minute) {
		return atKey("nodes.leave", "%q is not a duration of at most 1m, as 5s", n.Leave)
	}
	if len(n.Name) > 128 {
		return atKey("nodes.name", "has at most 128 bytes")
	}
	return nil
}
