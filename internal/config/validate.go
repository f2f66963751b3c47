package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"adit/internal/portrange"
)

func (f *File) validate() error {
	if f.HTTPListen != "" {
		host, port, err := net.SplitHostPort(f.HTTPListen)
		if err != nil {
			return f.Mistake("", -1, "http_listen", "must be host:port")
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 || strings.ContainsAny(host, " /") {
			return f.Mistake("", -1, "http_listen", "must be host:port")
		}
	}
	if f.LocalAPI.BearerToken != "" && f.LocalAPI.BearerTokenFile != "" {
		return f.Mistake("local_api", -1, "bearer_token_file", "excludes bearer_token")
	}
	for _, origin := range f.LocalAPI.AllowedOrigins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "" || u.User != nil {
			return f.Mistake("local_api", -1, "allowed_origins", fmt.Sprintf("%q must be scheme://host or scheme://host:port", origin))
		}
	}
	for _, host := range f.LocalAPI.AllowedHosts {
		if host == "" || strings.ContainsAny(host, "/@* \t") {
			return f.Mistake("local_api", -1, "allowed_hosts", fmt.Sprintf("%q must be a name, or name:port", host))
		}
	}
	if !slices.Contains([]string{"", "auto", "dtls", "tls"}, f.Session.Transport) {
		return f.Mistake("session", -1, "transport", "must be auto, dtls or tls")
	}
	if !slices.Contains([]string{"", "debug", "info", "warn", "error"}, f.Log.Level) {
		return f.Mistake("log", -1, "level", "must be debug, info, warn or error")
	}
	if n := f.Inspector.MemoryMiB; n < 0 || n > 4096 {
		return f.Mistake("inspector", -1, "memory_mib", "must be 1 to 4096")
	}
	if n := f.Inspector.BodyKiB; n < 0 || n > 64<<10 {
		return f.Mistake("inspector", -1, "body_kib", "must be 1 to 65536")
	}
	return f.validateTunnels()
}

func (f *File) validateTunnels() error {
	if len(f.Tunnels) > maxTunnels {
		return f.Mistake("tunnel", maxTunnels, "", fmt.Sprintf("there must be at most %d", maxTunnels))
	}
	names, all := map[string]bool{}, 0
	for i, t := range f.Tunnels {
		all += max(t.Ports, 1)
		switch {
		case t.Name == "":
			return f.Mistake("tunnel", i, "name", "is missing: each declared tunnel needs one")
		case names[t.Name]:
			return f.Mistake("tunnel", i, "name", fmt.Sprintf("another tunnel is called %q already", t.Name))
		case t.Ports < 0 || t.Ports > portrange.Most:
			return f.Mistake("tunnel", i, "ports", fmt.Sprintf("must be 1 to %d", portrange.Most))
		case t.Ports > 0 && t.Type != "tcp" && t.Type != "udp":
			return f.Mistake("tunnel", i, "ports", "is for tcp and udp tunnels only")
		case t.Ports > 0 && !portrange.Fits(t.Ports, t.LocalPort, t.RemotePort):
			return f.Mistake("tunnel", i, "ports", fmt.Sprintf("are too many: the last one would be beyond %d", portrange.Last))
		case all > maxTunnels:
			return f.Mistake("tunnel", i, "ports", fmt.Sprintf("are too many: there must be at most %d tunnels", maxTunnels))
		}
		names[t.Name] = true
	}
	return nil
}
