package relay

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"adit/tunnel/relay/config"
)

// startFlag is a flag and the configuration value that it overrides.
type startFlag[T any] struct {
	name string
	of   func(*config.Config) *T
	help string
}

var (
	startTexts = []startFlag[string]{
		{"domain", func(c *config.Config) *string { return &c.Domain }, "domain under which tunnels get their names"},
		{"data_dir", func(c *config.Config) *string { return &c.DataDir }, "folder for all of the relay's data (default relay in adit's state folder)"},
		{"tunnel_listen", func(c *config.Config) *string { return &c.TunnelListen }, "address where agents connect, UDP and TCP"},
		{"edge_http_listen", func(c *config.Config) *string { return &c.EdgeHTTPListen }, "address where visitors connect over HTTP"},
		{"edge_https_listen", func(c *config.Config) *string { return &c.EdgeHTTPSListen }, "address where visitors connect over HTTPS"},
		{"console_listen", func(c *config.Config) *string { return &c.ConsoleListen }, "address of the console and its API"},
		{"public_host", func(c *config.Config) *string { return &c.PublicHost }, "name or address by which agents reach the relay (default domain)"},
		{"tcp_ports", func(c *config.Config) *string { return &c.TCPPorts }, "ports for tcp tunnels, or none"},
		{"udp_ports", func(c *config.Config) *string { return &c.UDPPorts }, "ports for udp tunnels, or none"},
		{"proxy_protocol", func(c *config.Config) *string { return &c.ProxyProtocol }, "PROXY headers of trusted_proxies: accept, require or off"},
		{"tls_cert", func(c *config.Config) *string { return &c.TLSCert }, "certificate for visitors"},
		{"tls_key", func(c *config.Config) *string { return &c.TLSKey }, "key of tls_cert"},
		{"geo_database", func(c *config.Config) *string { return &c.Geo.Database }, "MMDB file for policies by country"},
	}
	startPorts = []startFlag[int]{
		{"public_http_port", func(c *config.Config) *int { return &c.PublicHTTPPort }, "port in http URLs (default that of edge_http_listen)"},
		{"public_https_port", func(c *config.Config) *int { return &c.PublicHTTPSPort }, "port in https and tls URLs, and for HTTP/3 (default that of edge_https_listen)"},
		{"public_tunnel_port", func(c *config.Config) *int { return &c.PublicTunnelPort }, "port of public_host that agents use (default that of tunnel_listen)"},
	}
	startSwitches = []startFlag[bool]{
		{"any_domain", func(c *config.Config) *bool { return &c.AnyDomain }, "allow clients to claim names outside the domain"},
		{"agents_by_https", func(c *config.Config) *bool { return &c.AgentsByHTTPS }, "also accept agents over TLS at edge_https_listen"},
		{"http3", func(c *config.Config) *bool { return &c.HTTP3 }, "offer visitors HTTP/3, on the UDP port of edge_https_listen"},
	}
	startLists = []startFlag[[]string]{
		{"trusted_proxies", func(c *config.Config) *[]string { return &c.TrustedProxies }, "CIDRs of load balancers in front of the relay"},
		{"nats_urls", func(c *config.Config) *[]string { return &c.NATS.URLs }, "servers of an external NATS cluster (default embedded)"},
	}
)

// startFlags are the flags of adit relay start that override its configuration.
type startFlags struct {
	set    *pflag.FlagSet
	values config.Config // the defaults, and what was given
	copies []func(*config.Config)
}

func newStartFlags(set *pflag.FlagSet) *startFlags {
	f := &startFlags{set: set, values: config.Defaults()}
	addStartFlags(f, set.StringVar, startTexts)
	addStartFlags(f, set.IntVar, startPorts)
	addStartFlags(f, set.BoolVar, startSwitches)
	addStartFlags(f, set.StringSliceVar, startLists)
	return f
}

func addStartFlags[T any](f *startFlags, define func(at *T, name string, value T, help string), flags []startFlag[T]) {
	for _, flag := range flags {
		at := flag.of(&f.values)
		define(at, flag.name, *at, flag.help)
		f.copies = append(f.copies, func(cfg *config.Config) {
			if f.set.Changed(flag.name) {
				*flag.of(cfg) = *at
			}
		})
	}
}

// over applies the given flags to cfg.
func (f *startFlags) over(cfg *config.Config) {
	for _, put := range f.copies {
		put(cfg)
	}
}

// located adds to a mistake in the configuration that it is in the file from, unless a flag caused
// it or there is no file.
func (f *startFlags) located(err error, from string) error {
	var fault *config.KeyError
	if !errors.As(err, &fault) || from == "" {
		return err
	}
	if key, _, _ := strings.Cut(fault.Key, "["); f.set.Changed(strings.ReplaceAll(key, ".", "_")) {
		return err
	}
	return fmt.Errorf("%s: %w", from, err)
}
