// Package tunnel contains the commands that create, list, change and delete tunnels, and finds the
// tunnel that a user names. What a tunnel may be is left to package definition.
package tunnel

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/definition"
	"adit/cli/guard"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/visible"
	"adit/localapi/client"
)

// Command is adit tunnel.
func Command(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return command.Group("tunnel", "Create, list, change and delete tunnels",
		`A tunnel defines what is published and at which address. It is kept until you
delete it, also when the daemon is restarted.`,
		createCommand(std, find),
		listCommand(std, find),
		oneCommand(std, find, "show", "Show one tunnel", (*client.Client).Tunnel),
		oneCommand(std, find, "start", "Start a tunnel", (*client.Client).StartTunnel),
		oneCommand(std, find, "stop", "Stop a tunnel without deleting it", (*client.Client).StopTunnel),
		updateCommand(std, find),
		policyCommand(std, find),
		deleteCommand(std, find),
	)
}

func createCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var f definition.Flags
	var guarding guard.Flags
	var ports int
	cmd := &cobra.Command{
		Use:   "create [PORT|HOST:PORT|URL]",
		Short: "Publish a local service permanently",
		Example: `  adit tunnel create 3000 --domain shop
  adit tunnel create --type tcp --local_port 22 --remote_port 20022
  adit tunnel create 27015 --type udp --ports 6 --remote_port 20015
  adit tunnel create 192.168.1.20:80 --type http --host_header printer.lan
  adit tunnel create https://nas.lan
  adit tunnel create 3000 --path /api=8080 --path /files=9000,strip
  adit tunnel create 3000 --domain shop --password
  adit tunnel create 22 --type tcp --allow 203.0.113.0/24
  adit tunnel create 22 --mode private --domain ssh --visitor laptop`,
		Args: command.Args(0, 1, "PORT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if err := f.SetLocal(args[0]); err != nil {
					return err
				}
			}
			in := f.Create()
			if in.LocalPort < 1 || in.LocalPort > 65535 {
				return command.Usagef("say which local port to publish, 1 to 65535, for example `adit tunnel create 3000`")
			}
			guarded, err := guarding.Read(std, in)
			if err != nil {
				return err
			}
			if guarded.Policy != nil {
				in.Policy = guarded.Policy
			}
			var wanted []client.TunnelCreate
			if cmd.Flags().Changed("ports") {
				if wanted, err = forPorts(in, ports); err != nil {
					return err
				}
			}
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			if wanted != nil {
				made, err := createAll(cmd.Context(), c, wanted)
				if err != nil {
					return err
				}
				return printAll(std, made)
			}
			t, err := daemon.Patiently(cmd.Context(), func() (client.Tunnel, error) { return c.CreateTunnel(cmd.Context(), in) })
			if err != nil {
				return daemon.WithoutToken(cmd.Context(), c, err)
			}
			return printMade(std, t, guarded.Password)
		},
	}
	f.All(cmd.Flags())
	guarding.Add(cmd.Flags())
	guarding.AddPassword(cmd.Flags())
	cmd.Flags().IntVar(&ports, "ports", 1, "publish this many consecutive tcp or udp ports, from the local port and --remote_port upwards, each as its own tunnel")
	return cmd
}

// printMade shows a newly created tunnel, and the password for its visitors, which is never shown
// again; empty for none.
func printMade(std *stdio.Streams, t client.Tunnel, password string) error {
	made := struct {
		client.Tunnel

		User     string `json:"user,omitempty"`
		Password string `json:"password,omitempty"`
	}{Tunnel: t, Password: password}
	if password != "" {
		made.User = guard.UserName
	}
	return std.PrintPage(made, func(w io.Writer) {
		definition.Write(w, t)
		if password != "" {
			fmt.Fprintf(w, "Password\t%s (user name %s)\n", visible.Text(password), guard.UserName)
		}
	})
}

func updateCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var f definition.Flags
	cmd := &cobra.Command{
		Use:     "update TUNNEL",
		Short:   "Change a tunnel",
		Long:    "Change a tunnel. " + command.StaysAsItIs,
		Example: "  adit tunnel update shop --local_port 3001",
		Args:    command.Args(1, 1, "TUNNEL (its id, name or domain)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := f.Update(cmd.Flags())
			if in == (client.TunnelUpdate{}) {
				return command.Usagef("say what to change, for example `adit tunnel update %s --local_port 3001`", args[0])
			}
			return onOne(cmd.Context(), std, find, args[0], func(c *client.Client, ctx context.Context, id string) (client.Tunnel, error) {
				return c.UpdateTunnel(ctx, id, in)
			})
		},
	}
	f.All(cmd.Flags())
	command.WithoutDefaults(cmd.Flags())
	return cmd
}

func oneCommand(std *stdio.Streams, find *daemon.Finder, name, short string, do func(*client.Client, context.Context, string) (client.Tunnel, error)) *cobra.Command {
	return &cobra.Command{
		Use: name + " TUNNEL", Short: short, Example: "  adit tunnel " + name + " shop",
		Args: command.Args(1, 1, "TUNNEL (its id, name or domain)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onOne(cmd.Context(), std, find, args[0], do)
		},
	}
}

// onOne calls do for the tunnel that the user named, and shows the result.
func onOne(ctx context.Context, std *stdio.Streams, find *daemon.Finder, name string, do func(*client.Client, context.Context, string) (client.Tunnel, error)) error {
	c, id, err := named(ctx, find, name)
	if err != nil {
		return err
	}
	t, err := daemon.Patiently(ctx, func() (client.Tunnel, error) { return do(c, ctx, id) })
	if err != nil {
		return err
	}
	return std.PrintPage(t, func(w io.Writer) { definition.Write(w, t) })
}

func listCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"},
		Short: "List all tunnels, running or not",
		Example: `  adit tunnel list
  adit tunnel list --json | jq -r '.items[] | select(.state == "failed").error'`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			all, err := c.Tunnels(cmd.Context())
			if err != nil {
				return err
			}
			return printAll(std, all)
		},
	}
}

func printAll(std *stdio.Streams, all []client.Tunnel) error {
	rows := table.New("ID|NAME|TYPE|LOCAL|STATE|URL",
		table.Identify("ID", "NAME"), table.Shorten("LOCAL", definition.ShortLocal), table.Drop("TYPE"), table.Squeeze("NAME", 12), table.Drop("LOCAL"))
	for _, t := range all {
		rows.Add(t.ID, t.Name, t.Type, definition.LocalText(t), t.State, t.PublicURL)
	}
	return std.PrintTable(stdio.ListOf(all), rows, "There is no tunnel. Create one: adit tunnel create 3000")
}

func deleteCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use: "delete TUNNEL", Aliases: []string{"rm"},
		Short:   "Delete a tunnel and release its public address",
		Example: "  adit tunnel delete shop",
		Args:    command.Args(1, 1, "TUNNEL (its id, name or domain)"),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			id, err := Find(cmd.Context(), c, args[0])
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
			return std.Print(gone, func(w io.Writer) { fmt.Fprintf(w, "Deleted %s.\n", visible.Text(args[0])) })
		},
	}
}
