package relay

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"adit/tunnel/relay/edge"
)

// Config is a relay's configuration: relay.toml, with flags above it.
type Config struct {
	Domain          string   `toml:"domain"`            // tunnels get names under it
	DataDir         string   `toml:"data_dir"`          // all that the relay keeps
	TunnelListen    string   `toml:"tunnel_listen"`     // for agents, UDP and TCP
	EdgeHTTPListen  string   `toml:"edge_http_listen"`  // for visitors
	EdgeHTTPSListen string   `toml:"edge_https_listen"` // for visitors
	ConsoleListen   string   `toml:"console_listen"`    // for the operator
	PublicHost      string   `toml:"public_host"`       // where agents find the relay; empty: domain
	TCPPorts        string   `toml:"tcp_ports"`         // first-last; "none" for no tcp tunnels
	UDPPorts        string   `toml:"udp_ports"`         // first-last; "none" for no udp tunnels
	TLSCert         string   `toml:"tls_cert"`          // file; with TLSKey
	TLSKey          string   `toml:"tls_key"`           // file
	AnyDomain       bool     `toml:"any_domain"`        // clients may claim names outside of Domain
	PagesDir        string   `toml:"pages_dir"`         // error pages
	TrustedProxies  []string `toml:"trusted_proxies"`   // CIDRs of load balancers in front
	ProxyProtocol   string   `toml:"proxy_protocol"`    // of those: accept, require or off
	HTTP3           bool     `toml:"http3"`             // for visitors, on the UDP port of edge_https_listen
	AccessLog       bool     `toml:"access_log"`        // access events are kept and sent on

	NATS    NATS    `toml:"nats"`
	Domains Domains `toml:"domains"`
	Sinks   Sinks   `toml:"sinks"`
	Geo     Geo     `toml:"geo"`
	Console Console `toml:"console"`
	Limits  Limits  `toml:"limits"`
	Nodes   Nodes   `toml:"nodes"`
	ACME    *ACME   `toml:"acme"` // nil: no public certificates are asked for
}

// NATS is where the store is. Without URLs it is inside the relay.
type NATS struct {
	URLs        []string `toml:"urls"`
	Credentials string   `toml:"credentials"` // file
	CA          string   `toml:"ca"`          // file
	Cert        string   `toml:"cert"`        // file
	Key         string   `toml:"key"`         // file
	Replicas    int      `toml:"replicas"`
	SecretFile  string   `toml:"secret_file"` // seals the private keys that nodes share
}

// Nodes is how this node works with others, which share its NATS.
type Nodes struct {
	Name         string `toml:"name"`          // of this one, for people; empty: the host's
	Listen       string `toml:"listen"`        // for other nodes, TCP
	Address      string `toml:"address"`       // where other nodes find this one; empty: guessed
	AgentAddress string `toml:"agent_address"` // where agents find this node and no other; empty: public_host
	Leave        string `toml:"leave"`         // duration; how long a node that ends still takes visitors, so that a load balancer sees it go
}

// Domains is how names outside of the relay's domain are proved.
type Domains struct {
	Resolvers []string `toml:"resolvers"` // host:port of DNS servers; empty: the system's
}

// Sinks is where events may be sent on.
type Sinks struct {
	AllowPrivate bool `toml:"allow_private"` // loopback, private and link-local addresses too
}

// Geo is the database that policies by country need.
type Geo struct {
	Database string `toml:"database"` // file, MMDB
}

// Console is the operator's page and API.
type Console struct {
	AllowedHosts []string `toml:"allowed_hosts"` // further names that it answers to
	OpenMetrics  bool     `toml:"open_metrics"`  // /metrics asks for no token
}

// Limits bound what clients and visitors may take. Zero means the default.
type Limits struct {
	Sessions              int    `toml:"sessions"`                // agents connected at once
	SessionsPerClient     int    `toml:"sessions_per_client"`     // of one client
	UnnamedPerAddress     int    `toml:"unnamed_per_address"`     // sessions of strangers that have not named themselves
	TunnelsPerSession     int    `toml:"tunnels_per_session"`     // of one agent
	ClaimsPerClient       int    `toml:"claims_per_client"`       // names and ports kept for one client
	ConnectionsPerAddress int    `toml:"connections_per_address"` // of visitors
	HeaderBytes           int    `toml:"header_bytes"`            // of a visitor's request
	HeaderTime            string `toml:"header_time"`             // duration
	IdleTime              string `toml:"idle_time"`               // duration; between requests
	StreamIdle            string `toml:"stream_idle"`             // duration; tcp and tls
	OriginTime            string `toml:"origin_time"`             // duration; for a response's header
	UDPFlows              int    `toml:"udp_flows"`               // of one endpoint
	UDPIdle               string `toml:"udp_idle"`                // duration
	UDPAmplification      int    `toml:"udp_amplification"`       // bytes back for each byte of an unproved visitor
	AccessDays            int    `toml:"access_days"`             // access events are kept
	AccessBytes           int64  `toml:"access_bytes"`            // of access events are kept
}

// Defaults are the values of what a configuration leaves out.
func Defaults() Config {
	return Config{
		TunnelListen: ":4433", EdgeHTTPListen: ":80", EdgeHTTPSListen: ":443", ConsoleListen: "127.0.0.1:37280",
		TCPPorts: "20000-20999", UDPPorts: "20000-20999", ProxyProtocol: "accept", HTTP3: true, AccessLog: true,
		Nodes: Nodes{Listen: ":4434", Leave: "5s"},
		Limits: Limits{
			Sessions: 20_000, SessionsPerClient: 1000, UnnamedPerAddress: 256, TunnelsPerSession: 1000, ClaimsPerClient: 10_000,
			ConnectionsPerAddress: 1024, HeaderBytes: 64 << 10, HeaderTime: "10s", IdleTime: "2m", StreamIdle: "2h",
			OriginTime: "5m", UDPFlows: 4096, UDPIdle: "1m", UDPAmplification: 3, AccessDays: 14, AccessBytes: 1 << 30,
		},
	}
}

// filled is l with the defaults for what is zero.
func (l Limits) filled() Limits {
	d := Defaults().Limits
	for _, n := range []struct{ value, otherwise *int }{
		{&l.Sessions, &d.Sessions},
		{&l.SessionsPerClient, &d.SessionsPerClient},
		{&l.UnnamedPerAddress, &d.UnnamedPerAddress},
		{&l.TunnelsPerSession, &d.TunnelsPerSession},
		{&l.ClaimsPerClient, &d.ClaimsPerClient},
		{&l.ConnectionsPerAddress, &d.ConnectionsPerAddress},
		{&l.HeaderBytes, &d.HeaderBytes},
		{&l.UDPFlows, &d.UDPFlows},
		{&l.UDPAmplification, &d.UDPAmplification},
		{&l.AccessDays, &d.AccessDays},
	} {
		*n.value = cmp.Or(*n.value, *n.otherwise)
	}
	for _, t := range []struct{ value, otherwise *string }{
		{&l.HeaderTime, &d.HeaderTime},
		{&l.IdleTime, &d.IdleTime},
		{&l.StreamIdle, &d.StreamIdle},
		{&l.OriginTime, &d.OriginTime},
		{&l.UDPIdle, &d.UDPIdle},
	} {
		*t.value = cmp.Or(*t.value, *t.otherwise)
	}
	l.AccessBytes = cmp.Or(l.AccessBytes, d.AccessBytes)
	return l
}

const maxConfigFile = 1 << 20

// Load reads a configuration file over the defaults. A key that it does not
// know is an error that names it.
func Load(path string) (Config, error) {
	cfg := Defaults()
	data, err := os.ReadFile(path)
	if err != nil {
		return cfg, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > maxConfigFile {
		return cfg, fmt.Errorf("read configuration %s: it is larger than 1 MiB", path)
	}
	dec := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields()
	err = dec.Decode(&cfg)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		first := strict.Errors[0]
		row, _ := first.Position()
		return cfg, fmt.Errorf("%s, line %d: there is no key %q", path, row, strings.Join(first.Key(), "."))
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		row, column := decode.Position()
		return cfg, fmt.Errorf("%s, line %d, column %d: %s", path, row, column, strings.TrimPrefix(decode.Error(), "toml: "))
	}
	if err != nil {
		return cfg, fmt.Errorf("read configuration %s: %w", path, err)
	}
	cfg.from(filepath.Dir(path))
	return cfg, nil
}

// from makes relative file names relative to the configuration's folder.
func (c *Config) from(dir string) {
	files := []*string{&c.DataDir, &c.TLSCert, &c.TLSKey, &c.PagesDir, &c.NATS.Credentials, &c.NATS.CA, &c.NATS.Cert, &c.NATS.Key, &c.NATS.SecretFile, &c.Geo.Database}
	if c.ACME != nil {
		files = append(files, &c.ACME.CA, &c.ACME.DNS.SecretFile, &c.ACME.DNS.CA)
	}
	for _, p := range files {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(dir, *p)
		}
	}
}

var domainLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// validName reports whether name is a DNS name in lower case.
func validName(name string) bool {
	if name == "" || len(name) > 253 || !strings.ContainsFunc(name, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if !domainLabel.MatchString(label) {
			return false
		}
	}
	return true
}

// Validate reports the first key whose value cannot be used.
func (c *Config) Validate() error {
	key := func(name, format string, args ...any) error {
		return fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))
	}
	c.Domain = strings.ToLower(strings.TrimSuffix(c.Domain, "."))
	c.PublicHost = strings.ToLower(strings.TrimSuffix(c.PublicHost, ".")) // no client may claim it, however it is written
	switch {
	case c.Domain == "":
		return key("domain", "is required: the name under which tunnels get theirs, as tunnel.example.com")
	case !validName(c.Domain):
		return key("domain", "%q is not a domain name", c.Domain)
	case c.DataDir == "":
		return key("data_dir", "is required: the folder that the relay keeps its data in")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return key("tls_key", "tls_cert and tls_key go together")
	}
	if c.PagesDir != "" {
		if info, err := os.Stat(c.PagesDir); err != nil || !info.IsDir() {
			return key("pages_dir", "%s is not a folder that can be read", c.PagesDir)
		}
	}
	for _, l := range []struct{ name, addr string }{
		{"tunnel_listen", c.TunnelListen},
		{"edge_http_listen", c.EdgeHTTPListen},
		{"edge_https_listen", c.EdgeHTTPSListen},
		{"console_listen", c.ConsoleListen},
	} {
		if _, port, err := net.SplitHostPort(l.addr); err != nil {
			return key(l.name, "%q is not host:port", l.addr)
		} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
			return key(l.name, "the port must be 0 to 65535")
		}
	}
	if c.PublicHost != "" && net.ParseIP(c.PublicHost) == nil && !validName(c.PublicHost) {
		return key("public_host", "%q is not a host name or address", c.PublicHost)
	}
	for _, p := range []struct{ name, text string }{{"tcp_ports", c.TCPPorts}, {"udp_ports", c.UDPPorts}} {
		if _, err := parsePorts(p.text); err != nil {
			return key(p.name, "%v", err)
		}
	}
	if _, ok := proxyHeaders[c.ProxyProtocol]; !ok {
		return key("proxy_protocol", "%q must be accept, require or off", c.ProxyProtocol)
	}
	if c.ProxyProtocol == "require" && len(c.TrustedProxies) == 0 {
		return key("proxy_protocol", "require needs trusted_proxies: headers are read from those alone")
	}
	for i, p := range c.TrustedProxies {
		if _, err := parsePrefix(p); err != nil {
			return key(fmt.Sprintf("trusted_proxies[%d]", i), "%q is not an address or CIDR", p)
		}
	}
	for i, server := range c.Domains.Resolvers {
		if host, port, err := net.SplitHostPort(server); err != nil || host == "" || port == "" {
			return key(fmt.Sprintf("domains.resolvers[%d]", i), "%q is not host:port", server)
		}
	}
	for _, d := range []struct{ name, text string }{
		{"limits.header_time", c.Limits.HeaderTime},
		{"limits.idle_time", c.Limits.IdleTime},
		{"limits.stream_idle", c.Limits.StreamIdle},
		{"limits.origin_time", c.Limits.OriginTime},
		{"limits.udp_idle", c.Limits.UDPIdle},
	} {
		if v, err := time.ParseDuration(d.text); d.text != "" && (err != nil || v <= 0) {
			return key(d.name, "%q is not a duration, as 30s", d.text)
		}
	}
	for _, n := range []struct {
		name  string
		value int
	}{
		{"limits.sessions", c.Limits.Sessions},
		{"limits.sessions_per_client", c.Limits.SessionsPerClient},
		{"limits.unnamed_per_address", c.Limits.UnnamedPerAddress},
		{"limits.tunnels_per_session", c.Limits.TunnelsPerSession},
		{"limits.claims_per_client", c.Limits.ClaimsPerClient},
		{"limits.connections_per_address", c.Limits.ConnectionsPerAddress},
		{"limits.header_bytes", c.Limits.HeaderBytes},
		{"limits.udp_flows", c.Limits.UDPFlows},
		{"limits.udp_amplification", c.Limits.UDPAmplification},
		{"limits.access_days", c.Limits.AccessDays},
		{"nats.replicas", c.NATS.Replicas},
	} {
		if n.value < 0 {
			return key(n.name, "must not be negative")
		}
	}
	if c.Limits.AccessBytes < 0 {
		return key("limits.access_bytes", "must not be negative")
	}
	if (c.NATS.Cert == "") != (c.NATS.Key == "") {
		return key("nats.key", "nats.cert and nats.key go together")
	}
	if c.NATS.SecretFile != "" && len(c.NATS.URLs) == 0 {
		return key("nats.secret_file", "is for an external NATS; set nats.urls too")
	}
	if err := c.Nodes.validate(key); err != nil {
		return err
	}
	if c.ACME != nil {
		if name, fault := c.ACME.validate(); name != "" {
			return key(name, "%s", fault)
		}
	}
	return nil
}

// proxyHeaders are the values of proxy_protocol.
var proxyHeaders = map[string]edge.ProxyHeader{
	"": edge.ProxyAccepted, "accept": edge.ProxyAccepted, "require": edge.ProxyRequired, "off": edge.ProxyOff,
}

func (n Nodes) validate(key func(name, format string, args ...any) error) error {
	for _, a := range []struct {
		name, addr string
		free       bool // port 0 and no host will do
	}{{"nodes.listen", n.Listen, true}, {"nodes.address", n.Address, false}, {"nodes.agent_address", n.AgentAddress, false}} {
		if a.addr == "" {
			continue
		}
		host, port, err := net.SplitHostPort(a.addr)
		number, badPort := strconv.ParseUint(port, 10, 16)
		if err != nil || badPort != nil || !a.free && (host == "" || number == 0) {
			return key(a.name, "%q is not host:port", a.addr)
		}
	}
	if v, err := time.ParseDuration(n.Leave); n.Leave != "" && (err != nil || v < 0 || v > time.Minute) {
		return key("nodes.leave", "%q is not a duration of at most 1m, as 5s", n.Leave)
	}
	if len(n.Name) > 128 {
		return key("nodes.name", "has at most 128 bytes")
	}
	return nil
}

func parsePrefix(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	return p.Masked(), err
}

// portRange is the ports that tunnels of a type may have; none if last is 0.
type portRange struct{ first, last int }

func (r portRange) has(port int) bool { return r.last != 0 && port >= r.first && port <= r.last }

func parsePorts(text string) (portRange, error) {
	if text == "none" || text == "" {
		return portRange{}, nil
	}
	from, to, ok := strings.Cut(text, "-")
	if !ok {
		to = from
	}
	first, err1 := strconv.Atoi(strings.TrimSpace(from))
	last, err2 := strconv.Atoi(strings.TrimSpace(to))
	if err1 != nil || err2 != nil || first < 1 || last > 65535 || first > last {
		return portRange{}, fmt.Errorf("%q is not a range of ports, as 20000-20999, or none", text)
	}
	return portRange{first, last}, nil
}
