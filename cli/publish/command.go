// Package publish contains the short forms: they publish a service of this machine until Ctrl-C,
// show its traffic in the meantime, and remove what they created. Commands for tunnels that last
// are in package tunnel.
package publish

import (
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/definition"
	"adit/cli/guard"
	"adit/cli/stdio"
)

var shortExamples = map[string]string{
	"http": `  adit http 3000
  adit http 192.168.1.20:80 --host_header printer.lan`,
	"https": `  adit https 3000
  adit https 3000 --domain shop
  adit https https://nas.lan:8443
  adit https 3000 --path /api=8080
  adit https 3000 --password --allow 203.0.113.0/24
  adit https 3000 --for 2h
  adit https 3000 --request_header X-Env:demo --response_header Server:`,
	"tls": `  adit tls 8443 --domain shop`,
	"tcp": `  adit tcp 22
  adit tcp 192.168.1.20:22 --remote_port 20022`,
	"udp": `  adit udp 51820
  adit udp 192.168.1.20:27015 --remote_port 20015`,
}

// Command returns the short form for one type: adit http 3000.
func Command(std *stdio.Streams, find *daemon.Finder, kind string) *cobra.Command {
	f := definition.Flags{Kind: kind}
	var guarding guard.Flags
	var lasts time.Duration
	takes := "PORT|HOST:PORT"
	if kind == "http" || kind == "https" {
		takes += "|URL"
	}
	cmd := &cobra.Command{
		Use:   kind + " " + takes,
		Short: "Publish a local port over " + kind + " until Ctrl-C",
		Long: `Publish a local port over ` + kind + ` and show its traffic, until Ctrl-C. The
tunnel is then removed; "adit tunnel create" makes a permanent one.

If no daemon is running, and none is installed as a service, this command runs
one for as long as it lasts.`,
		Example: shortExamples[kind],
		Args:    command.Args(1, 1, "PORT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.SetLocal(args[0]); err != nil {
				return err
			}
			if err := checkFor(cmd.Flags(), lasts); err != nil {
				return err
			}
			in := f.Create()
			in.Ephemeral = true
			guarded, err := guarding.Read(std, in)
			if err != nil {
				return err
			}
			what := published{TunnelCreate: in, Password: guarded.Password}
			if guarded.Policy != nil {
				what.Policy = guarded.Policy
			}
			if what.Password != "" {
				what.User = guard.UserName
			}
			return publish(cmd.Context(), std, find, what.lasting(lasts))
		},
	}
	f.Shared(cmd.Flags())
	guarding.Add(cmd.Flags())
	guarding.AddPassword(cmd.Flags())
	addFor(cmd.Flags(), &lasts)
	others := []string{"remote_port"} // they are refused with the reason
	if kind != "http" && kind != "https" {
		others = []string{"host_header", "request_header", "response_header", "path", "local_scheme", "password", "password_file"}
	}
	switch kind {
	case "tls":
		others = append(others, "remote_port")
	case "tcp":
		others = append(others, "domain")
	case "udp":
		others = append(others, "domain", "proxy_protocol")
	}
	for _, name := range others {
		_ = cmd.Flags().MarkHidden(name) // it is there
	}
	return cmd
}
