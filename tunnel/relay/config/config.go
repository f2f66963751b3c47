// Package config is relay.toml: its keys, their defaults, what they may be, and
// what they mean to the parts of a relay. Its errors are for people: they name the
// key at fault and say what to do.
package config

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"adit/internal/netblock"
	"adit/tunnel/relay/edge"
	"adit/tunnel/relay/sentence"
	"adit/tunnel/relay/store"
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
	AgentsByHTTPS   bool     `toml:"agents_by_https"`   // takes agents over TLS at edge_https_listen, too
	AccessLog       bool     `toml:"access_log"`        // access events are kept and sent on

	// The ports of public URLs and of PublicHost, where a port mapping, a load
	// balancer or a web server has others than the relay; 0: those it listens at.
	PublicHTTPPort   int `toml:"public_http_port"`
	PublicHTTPSPort  int `toml:"public_https_port"`
	PublicTunnelPort int `toml:"public_tunnel_port"`

	SignInHost string   `toml:"sign_in_host"` // that identity providers send visitors back to; empty: sign-in under Domain
	SignIn     []SignIn `toml:"sign_in"`      // identity providers

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
	Name         string `toml:"name"`                // of this one, for people; empty: the host's
	Listen       string `toml:"listen"`              // for other nodes, TCP
	Address      string `toml:"address"`             // where other nodes find this one; empty: guessed
	AgentAddress string `toml:"agent_address"`       // where agents find this node and no other; empty: public_host
	Leave        string `toml:"leave" is:"duration"` // duration; how long a node that ends still takes visitors, so that a load balancer sees it go
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

// Names are the further names, as they are compared.
func (c Console) Names() []string {
	names := make([]string, len(c.AllowedHosts))
	for i, name := range c.AllowedHosts {
		names[i] = strings.ToLower(strings.TrimSuffix(name, "."))
	}
	return names
}

// Limits bound what clients and visitors may take. Zero means the default.
type Limits struct {
	Sessions              int    `toml:"sessions"`                  // agents connected at once
	SessionsPerClient     int    `toml:"sessions_per_client"`       // of one client
	UnnamedPerAddress     int    `toml:"unnamed_per_address"`       // sessions of strangers that have not named themselves
	TunnelsPerSession     int    `toml:"tunnels_per_session"`       // of one agent
	ClaimsPerClient       int    `toml:"claims_per_client"`         // names and ports kept for one client
	Connections           int    `toml:"connections"`               // of all visitors; zero means what the machine has memory and files for
	ConnectionsPerAddress int    `toml:"connections_per_address"`   // of visitors
	HeaderBytes           int    `toml:"header_bytes"`              // of a visitor's request
	HeaderTime            string `toml:"header_time" is:"duration"` // duration
	IdleTime              string `toml:"idle_time" is:"duration"`   // duration; between requests
	StreamIdle            string `toml:"stream_idle" is:"duration"` // duration; of a connection, or of a request under way
	OriginTime            string `toml:"origin_time" is:"duration"` // duration; for a response's header
	UDPFlows              int    `toml:"udp_flows"`                 // of one endpoint
	UDPIdle               string `toml:"udp_idle" is:"duration"`    // duration
	UDPAmplification      int    `toml:"udp_amplification"`         // bytes back for each byte of an unproved visitor
	AccessDays            int    `toml:"access_days"`               // access events are kept
	AccessBytes           int64  `toml:"access_bytes"`              // of access events are kept
}

// Defaults are the values of what a configuration leaves out.
func Defaults() Config {
	return Config{
		TunnelListen: ":4433", EdgeHTTPListen: ":80", EdgeHTTPSListen: ":443", ConsoleListen: "127.0.0.1:37280",
		TCPPorts: "20000-20999", UDPPorts: "20000-20999", ProxyProtocol: "accept", HTTP3: true, AgentsByHTTPS: true, AccessLog: true,
		Nodes: Nodes{Listen: ":4434", Leave: "5s"},
		Limits: Limits{
			Sessions: 20_000, SessionsPerClient: 1000, UnnamedPerAddress: 256, TunnelsPerSession: 1000, ClaimsPerClient: 10_000,
			ConnectionsPerAddress: 1024, HeaderBytes: 64 << 10, HeaderTime: "10s", IdleTime: "2m", StreamIdle: "2h",
			OriginTime: "5m", UDPFlows: 4096, UDPIdle: "1m", UDPAmplification: 3, AccessDays: 14, AccessBytes: 1 << 30,
		},
	}
}

// Filled is l with the defaults for what is zero.
func (l Limits) Filled() Limits {
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

// Trusted are the proxies in front, which are validated.
func (c Config) Trusted() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range c.TrustedProxies {
		p, _ := netblock.Parse(text)
		list = append(list, p)
	}
	return list
}

// Resolver asks the configured servers in turn, or as the system does.
func (d Domains) Resolver() *net.Resolver {
	if len(d.Resolvers) == 0 {
		return net.DefaultResolver
	}
	var turn atomic.Uint32
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		server := d.Resolvers[(turn.Add(1)-1)%uint32(len(d.Resolvers))]
		return new(net.Dialer).DialContext(ctx, network, server)
	}}
}

// SharesPort reports whether agents and visitors have one port.
func (c Config) SharesPort() bool {
	_, port, _ := net.SplitHostPort(c.TunnelListen)
	return c.TunnelListen == c.EdgeHTTPSListen && port != "0"
}

// Store says where a relay's store is.
func (c Config) Store() (store.Config, error) {
	conf := store.Config{
		Dir: c.DataDir, URLs: c.NATS.URLs, Credentials: c.NATS.Credentials,
		CA: c.NATS.CA, Cert: c.NATS.Cert, Key: c.NATS.Key, Replicas: c.NATS.Replicas,
		Domain:    c.Domain,
		EventsAge: time.Duration(c.Limits.AccessDays) * 24 * time.Hour, EventsBytes: c.Limits.AccessBytes,
	}
	var err error
	if c.NATS.SecretFile != "" {
		conf.Secret, err = readSecret(c.NATS.SecretFile)
	}
	return conf, err
}

// Edge gives the limits that the edge holds. Durations are validated.
func (l Limits) Edge() edge.Limits {
	d := func(text string) time.Duration { v, _ := time.ParseDuration(text); return v }
	return edge.Limits{
		HeaderBytes: l.HeaderBytes, HeaderTime: d(l.HeaderTime), IdleTime: d(l.IdleTime), StreamIdle: d(l.StreamIdle),
		OriginTime: d(l.OriginTime), Connections: l.Connections, ConnectionsPerAddress: l.ConnectionsPerAddress,
		UDPFlows: l.UDPFlows, UDPIdle: d(l.UDPIdle), UDPAmplification: l.UDPAmplification,
	}
}

// readSecret reads what seals the keys that nodes share.
func readSecret(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, sentence.File("nats.secret_file", path, err)
	}
	secret := bytes.TrimSpace(data)
	if len(secret) < 16 {
		return nil, fmt.Errorf("nats.secret_file: %s has fewer than 16 bytes; `openssl rand -hex 32` makes one", path)
	}
	return secret, nil
}
