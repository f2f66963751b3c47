package claim

import (
	"errors"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// good returns a valid claim, except for what change does to it.
func good(change func(c *wire.Claim)) wire.Claim {
	c := wire.Claim{Type: wire.TypeHTTPS, Mode: wire.ModeStandard, Domain: "shop"}
	if change != nil {
		change(&c)
	}
	return c
}

func TestClaimsThatMayNotBe(t *testing.T) {
	for name, c := range map[string]struct {
		field  string
		change func(c *wire.Claim)
	}{
		"no type":                      {"type", func(c *wire.Claim) { c.Type = "" }},
		"a type between nodes":         {"type", func(c *wire.Claim) { c.Type = typePrivate }},
		"no mode":                      {"mode", func(c *wire.Claim) { c.Mode = "" }},
		"an unknown mode":              {"mode", func(c *wire.Claim) { c.Mode = "shared" }},
		"a port of http":               {"remote_port", func(c *wire.Claim) { c.Type, c.RemotePort = wire.TypeHTTP, 80 }},
		"a port of tls":                {"remote_port", func(c *wire.Claim) { c.Type, c.RemotePort = wire.TypeTLS, 443 }},
		"a port below all":             {"remote_port", func(c *wire.Claim) { c.Type, c.RemotePort = wire.TypeTCP, -1 }},
		"a port above all":             {"remote_port", func(c *wire.Claim) { c.Type, c.RemotePort = wire.TypeUDP, 65536 }},
		"a long name":                  {"name", func(c *wire.Claim) { c.Name = strings.Repeat("n", 129) }},
		"a host with a line end":       {"host_header", func(c *wire.Claim) { c.HostHeader = "app.local\r\nX-Evil: 1" }},
		"a host with port zero":        {"host_header", func(c *wire.Claim) { c.HostHeader = "app.local:0" }},
		"a host with a port above all": {"host_header", func(c *wire.Claim) { c.HostHeader = "app.local:65536" }},
		"a host with a long port":      {"host_header", func(c *wire.Claim) { c.HostHeader = "app.local:000080" }},
		"a host with a path":           {"host_header", func(c *wire.Claim) { c.HostHeader = "app.local/x" }},
		"a host without its bracket":   {"host_header", func(c *wire.Claim) { c.HostHeader = "[2001:db8::1" }},
		"a host with half a bracket":   {"host_header", func(c *wire.Claim) { c.HostHeader = "app.local]" }},
		"a path's host that is none":   {"paths", func(c *wire.Claim) { c.Paths = []wire.ClaimPath{{Path: "/a", HostHeader: "a b"}} }},
		"a path twice":                 {"paths", func(c *wire.Claim) { c.Paths = []wire.ClaimPath{{Path: "/a"}, {Path: "/a"}} }},
		"paths of tls":                 {"paths", func(c *wire.Claim) { c.Type, c.Paths = wire.TypeTLS, []wire.ClaimPath{{Path: "/a"}} }},
		"headers of tcp": {"request_headers", func(c *wire.Claim) {
			c.Type, c.RequestHeaders = wire.TypeTCP, wire.ChangeHeaders(map[string]string{"X-A": ""})
		}},
		"headers of udp's answers": {"response_headers", func(c *wire.Claim) {
			c.Type, c.ResponseHeaders = wire.TypeUDP, wire.ChangeHeaders(map[string]string{"X-A": ""})
		}},
		"headers that are the relay's": {"request_headers", func(c *wire.Claim) {
			c.RequestHeaders = wire.ChangeHeaders(map[string]string{"X-Forwarded-For": "192.0.2.1"})
		}},
		"visitors of the public":      {"visitors", func(c *wire.Claim) { c.Visitors = []string{"laptop"} }},
		"a private tunnel of https":   {"type", func(c *wire.Claim) { c.Mode = wire.ModePrivate }},
		"a private tunnel's port":     {"remote_port", func(c *wire.Claim) { c.Type, c.Mode, c.RemotePort = wire.TypeTCP, wire.ModePrivate, 22 }},
		"a private tunnel's domain":   {"domain", func(c *wire.Claim) { c.Type, c.Mode, c.Domain = wire.TypeUDP, wire.ModePrivate, "ssh.example" }},
		"a private tunnel's visitors": {"visitors", func(c *wire.Claim) { c.Type, c.Mode, c.Visitors = wire.TypeTCP, wire.ModePrivate, []string{"a/b"} }},
	} {
		asked := good(c.change)
		var p *wire.Problem
		if err := Check(&asked); !errors.As(err, &p) || p.Field != c.field {
			t.Errorf("%s: got %v, want %s at fault", name, err, c.field)
		}
	}
}

func TestClaimsAreBroughtIntoTheirForm(t *testing.T) {
	for name, c := range map[string]struct {
		change func(c *wire.Claim)
		right  func(c wire.Claim) bool
	}{
		"a name in capitals":      {func(c *wire.Claim) { c.Domain = " Shop.Example. " }, func(c wire.Claim) bool { return c.Domain == "shop.example" }},
		"a domain of tcp":         {func(c *wire.Claim) { c.Type = wire.TypeTCP }, func(c wire.Claim) bool { return c.Domain == "" }},
		"a private tunnel's name": {func(c *wire.Claim) { c.Type, c.Mode = wire.TypeTCP, wire.ModePrivate }, func(c wire.Claim) bool { return c.Domain == "shop" }},
		"the last port":           {func(c *wire.Claim) { c.Type, c.RemotePort = wire.TypeUDP, 65535 }, func(c wire.Claim) bool { return c.RemotePort == 65535 }},
		"a scheme that is none":   {func(c *wire.Claim) { c.Scheme = "javascript" }, func(c wire.Claim) bool { return c.Scheme == "" }},
		"a scheme":                {func(c *wire.Claim) { c.Scheme = "https" }, func(c wire.Claim) bool { return c.Scheme == "https" }},
		"a path's scheme that is none": {
			func(c *wire.Claim) { c.Paths = []wire.ClaimPath{{Path: "/a", Scheme: "javascript"}} },
			func(c wire.Claim) bool { return c.Paths[0].Scheme == "" },
		},
		"paths": {
			func(c *wire.Claim) { c.Paths = []wire.ClaimPath{{Path: "/a"}, {Path: "/a/b"}} },
			func(c wire.Claim) bool { return c.Paths[0].Path == "/a/b" && c.Paths[1].Path == "/a" },
		},
		"http, with all that it may have": {
			func(c *wire.Claim) {
				c.Type, c.Mode, c.Scheme, c.Name = wire.TypeHTTP, wire.ModeBalanced, "http", strings.Repeat("n", 128)
				c.RequestHeaders = wire.ChangeHeaders(map[string]string{"X-A": ""})
				c.Paths = []wire.ClaimPath{{Path: "/a", HostHeader: "App.local:65535"}}
			},
			func(c wire.Claim) bool { return c.Scheme == "http" && len(c.Paths) == 1 },
		},
		"a private tunnel that the relay names": {
			func(c *wire.Claim) { c.Type, c.Mode, c.Domain = wire.TypeUDP, wire.ModePrivate, "" },
			func(c wire.Claim) bool { return c.Domain == "" },
		},
		"an address without a port": {func(c *wire.Claim) { c.HostHeader = "[2001:db8::1]" }, func(c wire.Claim) bool { return c.HostHeader != "" }},
		"an address":                {func(c *wire.Claim) { c.HostHeader = "[2001:db8::1]:8080" }, func(c wire.Claim) bool { return c.HostHeader != "" }},
	} {
		asked := good(c.change)
		if err := Check(&asked); err != nil || !c.right(asked) {
			t.Errorf("%s: got %+v, %v", name, asked, err)
		}
	}
}
