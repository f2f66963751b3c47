// Package definition describes a tunnel on the command line: the flags and the local service name
// that define one, and how a tunnel is written for a person. The daemon decides which tunnels are
// valid.
package definition

import (
	"github.com/spf13/pflag"

	"adit/cli/command"
	"adit/localapi/client"
)

// Flags are the flags that define a tunnel.
type Flags struct {
	Kind string // the type; a short form sets it

	mode, localIP, domain, localScheme, hostHeader, proxyProtocol string
	name                                                          textFlag
	localPort, remotePort                                         int
	inspect                                                       bool
	requestHeaders, responseHeaders                               headerFlag
	paths                                                         pathFlag
	visitors                                                      []string
}

// Shared adds the flags that the short forms have too.
func (f *Flags) Shared(flags *pflag.FlagSet) {
	flags.StringVar(&f.mode, "mode", "", "standard; balanced shares the address with other agents; private has no public address, see adit visit")
	flags.StringVar(&f.domain, "domain", "", "full name, or one label below the relay's domain, such as shop; '*.shop' covers all names below it; empty lets the relay choose")
	flags.Var(&f.name, "name", "display name")
	flags.StringVar(&f.localScheme, "local_scheme", "", "protocol of the local service: http, https or h2c")
	flags.IntVar(&f.remotePort, "remote_port", 0, "public port, for tcp and udp; 0 lets the relay choose")
	flags.StringVar(&f.hostHeader, "host_header", "", "Host header that the local service gets; empty keeps the visitor's")
	flags.Var(&f.requestHeaders, "request_header", "set a header of each request to the local service; \"Name:\" removes it; may be repeated")
	flags.Var(&f.responseHeaders, "response_header", "set a header of each response to visitors; \"Name:\" removes it; may be repeated")
	flags.Var(&f.paths, "path", "send a path to a different local service: /api=8080, =HOST:PORT or =https://HOST:PORT; append \",strip\" to remove the path from requests, and \",host=NAME\" to set their Host header; may be repeated")
	flags.StringSliceVar(&f.visitors, "visitor", nil, "client of the relay that may visit a private tunnel, by name; '*' allows all; may be repeated")
	flags.StringVar(&f.proxyProtocol, "proxy_protocol", "", "send the visitor's address to the local service in a PROXY header: v1 or v2")
	flags.BoolVar(&f.inspect, "inspect", true, "show traffic in the inspector")
}

// All adds the flags for creating or changing a lasting tunnel.
func (f *Flags) All(flags *pflag.FlagSet) {
	flags.StringVar(&f.Kind, "type", "", "http, https, tls, tcp or udp (default https)")
	flags.StringVar(&f.localIP, "local_ip", "", "address of the local service (default 127.0.0.1)")
	flags.IntVar(&f.localPort, "local_port", 0, "port of the local service")
	f.Shared(flags)
}

// Create returns the tunnel that the flags define.
func (f *Flags) Create() client.TunnelCreate {
	in := client.TunnelCreate{
		Type: client.TunnelType(f.Kind), Mode: client.TunnelMode(f.mode), LocalIP: f.localIP, LocalPort: f.localPort,
		Domain: f.domain, Name: string(f.name), LocalScheme: client.LocalScheme(f.localScheme), RemotePort: f.remotePort,
		HostHeader: f.hostHeader, RequestHeaders: f.requestHeaders.fields, ResponseHeaders: f.responseHeaders.fields,
		Paths: f.paths.paths, Visitors: f.visitors, ProxyProtocol: client.ProxyProtocol(f.proxyProtocol),
	}
	if !f.inspect {
		in.Inspect = &f.inspect
	}
	return in
}

// Update returns the fields whose flags were given.
func (f *Flags) Update(flags *pflag.FlagSet) client.TunnelUpdate {
	var in client.TunnelUpdate
	given := func(name string, set func()) {
		if flags.Changed(name) {
			set()
		}
	}
	given("type", func() { in.Type = (*client.TunnelType)(&f.Kind) })
	given("mode", func() { in.Mode = (*client.TunnelMode)(&f.mode) })
	given("local_ip", func() { in.LocalIP = &f.localIP })
	given("local_port", func() { in.LocalPort = &f.localPort })
	given("domain", func() { in.Domain = &f.domain })
	given("name", func() { in.Name = (*string)(&f.name) })
	given("local_scheme", func() { in.LocalScheme = (*client.LocalScheme)(&f.localScheme) })
	given("remote_port", func() { in.RemotePort = &f.remotePort })
	given("host_header", func() { in.HostHeader = &f.hostHeader })
	given("request_header", func() { in.RequestHeaders = &f.requestHeaders.fields })
	given("response_header", func() { in.ResponseHeaders = &f.responseHeaders.fields })
	given("path", func() { in.Paths = &f.paths.paths })
	given("visitor", func() { in.Visitors = &f.visitors })
	given("proxy_protocol", func() { in.ProxyProtocol = (*client.ProxyProtocol)(&f.proxyProtocol) })
	given("inspect", func() { in.Inspect = &f.inspect })
	return in
}

// SetLocal sets the local service from a command's argument.
func (f *Flags) SetLocal(text string) error {
	local, err := parseLocal(text)
	if err != nil {
		return err
	}
	if f.localPort != 0 || local.ip != "" && f.localIP != "" || local.scheme != "" && f.localScheme != "" {
		return command.Usagef("the local service is given twice: as %s and by a flag", text)
	}
	f.localPort = local.port
	if local.ip != "" {
		f.localIP = local.ip
	}
	if local.scheme != "" {
		f.localScheme = local.scheme
	}
	return nil
}
