package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/visible"
	"adit/localapi/client"
)

func tunnelCommand(env *Env) *cobra.Command {
	return command.Group("tunnel", "Create, list, change and delete tunnels",
		`A tunnel says what is published and where. It survives restarts of the daemon,
until it is deleted.`,
		tunnelCreateCommand(env),
		tunnelListCommand(env),
		oneTunnelCommand(env, "show", "Show one tunnel", (*client.Client).Tunnel),
		oneTunnelCommand(env, "start", "Start a tunnel", (*client.Client).StartTunnel),
		oneTunnelCommand(env, "stop", "Stop a tunnel and keep it", (*client.Client).StopTunnel),
		tunnelUpdateCommand(env),
		tunnelPolicyCommand(env),
		tunnelDeleteCommand(env),
	)
}

// tunnelFlags are the flags of what may be said of a tunnel.
type tunnelFlags struct {
	kind, mode, localIP, domain, name, localScheme, hostHeader, proxyProtocol string
	localPort, remotePort                                                     int
	inspect                                                                   bool
	requestHeaders, responseHeaders                                           headerFlag
	paths                                                                     pathFlag
	visitors                                                                  []string
}

// shared adds the flags that the short forms have too.
func (f *tunnelFlags) shared(flags *pflag.FlagSet) {
	flags.StringVar(&f.mode, "mode", "", "standard; balanced to share the address with other agents; private for no public address, see adit visit")
	flags.StringVar(&f.domain, "domain", "", "full name, or one label under the relay's domain, as shop; '*.shop' is all names below it; empty lets the relay give one")
	flags.StringVar(&f.name, "name", "", "a name for people")
	flags.StringVar(&f.localScheme, "local_scheme", "", "http, https or h2c: how the local service is spoken to")
	flags.IntVar(&f.remotePort, "remote_port", 0, "public port of tcp and udp; 0 lets the relay give one")
	flags.StringVar(&f.hostHeader, "host_header", "", "the Host that the local service sees; empty keeps the visitor's")
	flags.Var(&f.requestHeaders, "request_header", "a header that the local service gets, in place of the visitor's; \"Name:\" removes one; may be repeated")
	flags.Var(&f.responseHeaders, "response_header", "the same for what visitors get")
	flags.Var(&f.paths, "path", "a path that leads to a local service of its own: /api=8080, =HOST:PORT or =https://HOST:PORT; with \",strip\" behind that is asked without the path, and with \",host=NAME\" sees this Host; may be repeated")
	flags.StringSliceVar(&f.visitors, "visitor", nil, "of mode private: a client of the relay, by name, that may visit; '*' is all of them; may be repeated")
	flags.StringVar(&f.proxyProtocol, "proxy_protocol", "", "v1 or v2: tells the local service the visitor's address")
	flags.BoolVar(&f.inspect, "inspect", true, "show what passes in the inspector")
}

func (f *tunnelFlags) all(flags *pflag.FlagSet) {
	flags.StringVar(&f.kind, "type", "", "http, https, tls, tcp or udp (default https)")
	flags.StringVar(&f.localIP, "local_ip", "", "address of the local service (default 127.0.0.1)")
	flags.IntVar(&f.localPort, "local_port", 0, "port of the local service")
	f.shared(flags)
}

func (f *tunnelFlags) create() client.TunnelCreate {
	in := client.TunnelCreate{
		Type: client.TunnelType(f.kind), Mode: client.TunnelMode(f.mode), LocalIP: f.localIP, LocalPort: f.localPort,
		Domain: f.domain, Name: f.name, LocalScheme: client.LocalScheme(f.localScheme), RemotePort: f.remotePort,
		HostHeader: f.hostHeader, RequestHeaders: f.requestHeaders.fields, ResponseHeaders: f.responseHeaders.fields,
		Paths: f.paths.paths, Visitors: f.visitors, ProxyProtocol: client.ProxyProtocol(f.proxyProtocol),
	}
	if !f.inspect {
		in.Inspect = &f.inspect
	}
	return in
}

// update has the fields whose flags were given.
func (f *tunnelFlags) update(flags *pflag.FlagSet) client.TunnelUpdate {
	var in client.TunnelUpdate
	given := func(name string, set func()) {
		if flags.Changed(name) {
			set()
		}
	}
	given("type", func() { in.Type = (*client.TunnelType)(&f.kind) })
	given("mode", func() { in.Mode = (*client.TunnelMode)(&f.mode) })
	given("local_ip", func() { in.LocalIP = &f.localIP })
	given("local_port", func() { in.LocalPort = &f.localPort })
	given("domain", func() { in.Domain = &f.domain })
	given("name", func() { in.Name = &f.name })
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

func tunnelCreateCommand(env *Env) *cobra.Command {
	var f tunnelFlags
	var ports int
	cmd := &cobra.Command{
		Use:   "create [PORT|HOST:PORT|URL]",
		Short: "Publish a local service for good",
		Example: `  adit tunnel create 3000 --domain shop
  adit tunnel create --type tcp --local_port 22 --remote_port 20022
  adit tunnel create 27015 --type udp --ports 6 --remote_port 20015
  adit tunnel create 192.168.1.20:80 --type http --host_header printer.lan
  adit tunnel create https://nas.lan
  adit tunnel create 3000 --path /api=8080 --path /files=9000,strip
  adit tunnel create 22 --mode private --domain ssh --visitor laptop`,
		Args: command.Args(0, 1, "PORT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := f.setLocal(args[0]); err != nil {
					return err
				}
			}
			if f.localPort < 1 || f.localPort > 65535 {
				return command.Usagef("say which local port to publish, 1 to 65535, as in `adit tunnel create 3000`")
			}
			var wanted []client.TunnelCreate
			if cmd.Flags().Changed("ports") {
				var err error
				if wanted, err = forPorts(f.create(), ports); err != nil {
					return err
				}
			}
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if wanted != nil {
				made, err := createAll(cmd.Context(), c, wanted)
				if err != nil {
					return err
				}
				return env.printTunnels(made)
			}
			t, err := daemon.Patiently(cmd.Context(), func() (client.Tunnel, error) { return c.CreateTunnel(cmd.Context(), f.create()) })
			if err != nil {
				return daemon.WithoutToken(cmd.Context(), c, err)
			}
			return env.std.PrintPage(t, func(w io.Writer) { writeTunnel(w, t) })
		},
	}
	f.all(cmd.Flags())
	cmd.Flags().IntVar(&ports, "ports", 1, "for tcp and udp: so many ports from the local one on, and from --remote_port on, each with a tunnel of its own")
	return cmd
}

func tunnelUpdateCommand(env *Env) *cobra.Command {
	var f tunnelFlags
	cmd := &cobra.Command{
		Use:     "update TUNNEL",
		Short:   "Change a tunnel",
		Long:    "Change a tunnel. " + command.StaysAsItIs,
		Example: "  adit tunnel update shop --local_port 3001",
		Args:    command.Args(1, 1, "TUNNEL (its id, name or domain)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := f.update(cmd.Flags())
			if in == (client.TunnelUpdate{}) {
				return command.Usagef("say what to change, as in `adit tunnel update %s --local_port 3001`", args[0])
			}
			return env.onTunnel(cmd.Context(), args[0], func(c *client.Client, ctx context.Context, id string) (client.Tunnel, error) {
				return c.UpdateTunnel(ctx, id, in)
			})
		},
	}
	f.all(cmd.Flags())
	command.WithoutDefaults(cmd.Flags())
	return cmd
}

func oneTunnelCommand(env *Env, name, short string, do func(*client.Client, context.Context, string) (client.Tunnel, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " TUNNEL", Short: short, Example: "  adit tunnel " + name + " shop",
		Args: command.Args(1, 1, "TUNNEL (its id, name or domain)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return env.onTunnel(cmd.Context(), args[0], do)
		},
	}
}

// onTunnel does something with the tunnel that a person named, and shows it.
func (e *Env) onTunnel(ctx context.Context, named string, do func(*client.Client, context.Context, string) (client.Tunnel, error)) error {
	c, id, err := e.tunnelNamed(ctx, named)
	if err != nil {
		return err
	}
	t, err := daemon.Patiently(ctx, func() (client.Tunnel, error) { return do(c, ctx, id) })
	if err != nil {
		return err
	}
	return e.std.PrintPage(t, func(w io.Writer) { writeTunnel(w, t) })
}

// tunnelNamed returns the daemon's client, and the id of the tunnel that a person
// named.
func (e *Env) tunnelNamed(ctx context.Context, named string) (*client.Client, string, error) {
	c, err := e.find.Client(ctx)
	if err != nil {
		return nil, "", err
	}
	id, err := findTunnel(ctx, c, named)
	return c, id, err
}

// findTunnel returns the id of the tunnel with this id, or the only one with
// this name, or, if none has it, with this domain.
func findTunnel(ctx context.Context, c *client.Client, named string) (string, error) {
	all, err := c.Tunnels(ctx)
	if err != nil {
		return "", err
	}
	var byName, byDomain []string
	for _, t := range all {
		switch {
		case named == "":
		case t.ID == named:
			return t.ID, nil
		case t.Name == named:
			byName = append(byName, t.ID)
		case hasDomain(t, named):
			byDomain = append(byDomain, t.ID)
		}
	}
	found := byName
	if len(found) == 0 {
		found = byDomain
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("there is no tunnel %q; `adit tunnel list` shows them", named)
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d tunnels have the name or domain %q; name one by its id: %s", len(found), named, strings.Join(found, ", "))
}

// tunnelsByID are the daemon's tunnels.
func tunnelsByID(ctx context.Context, c *client.Client) (map[string]client.Tunnel, error) {
	all, err := c.Tunnels(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[string]client.Tunnel, len(all))
	for _, t := range all {
		by[t.ID] = t
	}
	return by, nil
}

// hasDomain reports whether a tunnel's domain is this one: as it was asked for, or
// as visitors see it.
func hasDomain(t client.Tunnel, name string) bool {
	if t.Domain == "" {
		return false // the relay's own name is in the URL
	}
	u, err := url.Parse(t.PublicURL)
	return strings.EqualFold(t.Domain, name) || err == nil && strings.EqualFold(u.Hostname(), name)
}

func tunnelListCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List all tunnels, running or not",
		Example: `  adit tunnel list
  adit tunnel list --json | jq -r '.items[] | select(.state == "failed").error'`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			all, err := c.Tunnels(cmd.Context())
			if err != nil {
				return err
			}
			return env.printTunnels(all)
		},
	}
}

func (e *Env) printTunnels(all []client.Tunnel) error {
	rows := table.New("ID|NAME|TYPE|LOCAL|STATE|URL",
		table.Identify("ID", "NAME"), table.Shorten("LOCAL", shortLocal), table.Drop("TYPE"), table.Squeeze("NAME", 12), table.Drop("LOCAL"))
	for _, t := range all {
		rows.Add(t.ID, t.Name, t.Type, localText(t), t.State, t.PublicURL)
	}
	return e.std.PrintTable(stdio.ListOf(all), rows, "There is no tunnel. Create one: adit tunnel create 3000")
}

func tunnelDeleteCommand(env *Env) *cobra.Command {
	return &cobra.Command{
		Use: "delete TUNNEL", Aliases: []string{"rm"},
		Short:   "Delete a tunnel; its public address is given back",
		Example: "  adit tunnel delete shop",
		Args:    command.Args(1, 1, "TUNNEL (its id, name or domain)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := env.find.Client(cmd.Context())
			if err != nil {
				return err
			}
			id, err := findTunnel(cmd.Context(), c, args[0])
			if err != nil {
				return err
			}
			if _, err := daemon.Patiently(cmd.Context(), func() (struct{}, error) {
				return struct{}{}, c.DeleteTunnel(cmd.Context(), id)
			}); err != nil {
				return err
			}
			gone := struct {
				ID      string `json:"id"`
				Deleted bool   `json:"deleted"`
			}{id, true}
			return env.std.Print(gone, func(w io.Writer) { fmt.Fprintf(w, "Deleted %s.\n", visible.Text(args[0])) })
		},
	}
}

func localText(t client.Tunnel) string {
	return net.JoinHostPort(t.LocalIP, strconv.Itoa(t.LocalPort))
}

func writeTunnel(w io.Writer, t client.Tunnel) {
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, visible.Text(value))
		}
	}
	row("URL", t.PublicURL)
	row("Local", localText(t))
	row("State", string(t.State))
	row("Error", t.Error)
	row("Name", t.Name)
	row("Type", string(t.Type)+", "+string(t.Mode))
	row("Domain", t.Domain)
	if t.RemotePort != 0 {
		row("Port", strconv.Itoa(t.RemotePort))
	}
	row("Host header", t.HostHeader)
	writeHeaders(w, "Request header", t.RequestHeaders)
	writeHeaders(w, "Response header", t.ResponseHeaders)
	writePaths(w, t.Paths)
	row("Visitors", strings.Join(t.Visitors, ", "))
	row("PROXY protocol", string(t.ProxyProtocol))
	if t.Declared {
		row("Declared", "in adit.toml; change it there")
	}
	if t.Ephemeral {
		row("Ephemeral", "gone when the daemon ends")
	}
	row("Created", localtime.Text(t.CreatedAt))
	row("ID", t.ID)
}

// shortLocal is the address of a local service as commands take it: of one on
// this machine the port alone.
func shortLocal(text string) string { return strings.TrimPrefix(text, "127.0.0.1:") }
