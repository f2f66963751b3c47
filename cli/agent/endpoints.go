package agent

import (
	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/definition"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/bytesize"
	"adit/localapi/client"
)

// EndpointsCommand is adit endpoints.
func EndpointsCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return &cobra.Command{
		Use:   "endpoints",
		Short: "List the public addresses that work now",
		Example: `  adit endpoints
  adit endpoints --json | jq -r '.items[].public_url'`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := find.Client(cmd.Context())
			if err != nil {
				return err
			}
			items, err := c.Endpoints(cmd.Context())
			if err != nil {
				return err
			}
			var tunnels []client.Tunnel
			if len(items) == 0 {
				if tunnels, err = c.Tunnels(cmd.Context()); err != nil {
					return err
				}
			}
			rows := table.New("NAME|URL|LOCAL|STATE|OPEN|TOTAL|IN|OUT|ERROR",
				table.Shorten("LOCAL", definition.ShortLocal), table.Drop("STATE"), table.Drop("LOCAL"), table.Squeeze("NAME", 12), table.Drop("TOTAL"), table.Drop("IN"), table.Drop("OUT"), table.Drop("OPEN"))
			for _, e := range items {
				rows.Add(e.Name, e.PublicURL, e.Local, e.State, e.Connections.Open, e.Connections.Total, bytesize.Text(e.Bytes.In), bytesize.Text(e.Bytes.Out), e.Error)
			}
			rows.OmitEmpty("ERROR")
			return std.PrintTable(stdio.ListOf(items), rows, nothingPublished(tunnels))
		},
	}
}

// nothingPublished says why no public address answers.
func nothingPublished(tunnels []client.Tunnel) string {
	waiting := 0
	for _, t := range tunnels {
		if t.State == client.TunnelStateWaiting || t.State == client.TunnelStateStarting {
			waiting++
		}
	}
	switch {
	case len(tunnels) == 0:
		return "Nothing is published now. Publish something: adit https 3000"
	case waiting > 0:
		return "No public address answers now: tunnels wait for the session with the relay; `adit status` says why."
	}
	return "No public address answers now: all tunnels are stopped or have failed; `adit tunnel list` shows them."
}
