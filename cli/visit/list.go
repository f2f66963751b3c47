package visit

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"adit/cli/completion"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/bytesize"
	"adit/internal/visible"
	"adit/localapi/client"
)

// list shows the visits that adit.toml declares, and the other private tunnels that admit this
// client.
func list(ctx context.Context, std *stdio.Streams, find *daemon.Finder) error {
	c, err := find.Client(ctx)
	if err != nil {
		return err
	}
	all, err := c.Visits(ctx)
	if err != nil {
		return err
	}
	invitations, err := c.Invitations(ctx)
	if err != nil { // what is declared can be told all the same
		fmt.Fprintf(std.Err, "adit: could not find out which other tunnels may be visited: %s\n", visible.Text(err.Error()))
	}
	rows := table.New("LISTEN|TUNNEL|TYPE|STATE|OPEN|TOTAL|IN|OUT|ERROR", table.Drop("TOTAL"), table.Drop("OUT"), table.Drop("IN"), table.Drop("OPEN"))
	for _, v := range all {
		rows.Add(v.Listen, v.Tunnel, v.Type, v.State, v.Connections.Open, v.Connections.Total, bytesize.Text(v.Bytes.In), bytesize.Text(v.Bytes.Out), v.Error)
	}
	for _, i := range invitations {
		if !slices.ContainsFunc(all, func(v client.Visit) bool { return v.Tunnel == i.Tunnel }) {
			rows.Add("-", i.Tunnel, i.Type, "invited", "-", "-", "-", "-", "")
		}
	}
	rows.OmitEmpty("ERROR")
	shown := struct {
		stdio.List[client.Visit]
		Invitations []client.Invitation `json:"invitations"` // null if the relay could not be asked
	}{stdio.ListOf(all), invitations}
	none := "No visit is declared in adit.toml, and no private tunnel lets this client in now."
	if err != nil {
		none = "No visit is declared in adit.toml."
	}
	return std.PrintTable(shown, rows, none)
}

// complete lists the private tunnels that admit this client.
func complete(find *daemon.Finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completion.From(cmd, find, func(ctx context.Context, c *client.Client) (list []cobra.Completion, err error) {
			all, err := c.Invitations(ctx)
			for _, i := range all {
				if strings.HasPrefix(i.Tunnel, begun) {
					list = append(list, i.Tunnel)
				}
			}
			return list, err
		})
	}
}
