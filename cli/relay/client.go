package relay

import (
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/internal/span"
	"adit/tunnel/relay/console"
)

// maxOverlap is the longest time for which a relay lets an old token remain valid.
const maxOverlap = 90 * 24 * time.Hour

func clientCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	var overlap time.Duration
	var scope scopeFlags
	add := &cobra.Command{
		Use:     "add NAME",
		Short:   "Add a client, and print its auth token once",
		Example: "  adit relay client add shop --types http,https --domains 'shop,shop-*' --tunnels 5",
		Args:    command.Args(1, 1, "the client's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := struct {
				Name  string        `json:"name"`
				Scope console.Scope `json:"scope"`
			}{Name: args[0]}
			if err := scope.over(cmd, &in.Scope); err != nil {
				return err
			}
			var t console.NewToken
			if err := a.Call(cmd.Context(), http.MethodPost, "/api/v1/clients", in, &t); err != nil {
				return err
			}
			return printToken(std, t, "Keep it: it is not shown again. On the client's machine: adit login TOKEN")
		},
	}
	scope.add(add)
	rotate := &cobra.Command{
		Use:     "rotate NAME",
		Short:   "Give a client a new auth token; the old one keeps working for a while",
		Example: "  adit relay client rotate shop --overlap 1h",
		Args:    command.Args(1, 1, "the client's name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if overlap < 0 || overlap > maxOverlap {
				return command.Usagef("--overlap must be 0 to 2160h (90 days)")
			}
			var t console.NewToken
			in := map[string]int64{"overlap_seconds": int64(overlap.Seconds())}
			if err := a.Call(cmd.Context(), http.MethodPost, clientPath(args[0])+"/rotate", in, &t); err != nil {
				return err
			}
			if overlap < time.Second {
				return printToken(std, t, fmt.Sprintf("The old token of %s no longer works.", t.Name))
			}
			return printToken(std, t, fmt.Sprintf("The old token of %s keeps working for %s.", t.Name, span.Text(overlap)))
		},
	}
	rotate.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old token keeps working")
	rotate.Flags().Lookup("overlap").DefValue = "24h" // as it is typed
	return a.Flags(command.Group("client", "Manage the clients of a running relay", "",
		add,
		clientSetCommand(a),
		clientShowCommand(a),
		listing[console.Client]{
			use: "list", short: "List the clients",
			example: "  adit relay client list --json | jq -r '.items[].name'",
			path:    "/api/v1/clients", heading: "NAME|STATE|AGENTS|NAMES AND PORTS|TOKENS|TRAFFIC|LAST SEEN|SINCE",
			narrower: []table.Step{table.Drop("SINCE"), table.Drop("TOKENS"), table.Shorten("LAST SEEN", localtime.WithoutYear), table.Squeeze("NAME", 16)},
			row:      clientRow, none: "There is no client. Add one: adit relay client add NAME",
		}.command(a),
		&cobra.Command{
			Use:     "revoke NAME",
			Short:   "Revoke a client's access and disconnect its agents immediately",
			Example: "  adit relay client revoke shop",
			Args:    command.Args(1, 1, "the client's name"),
			RunE: func(cmd *cobra.Command, args []string) error {
				if err := a.Call(cmd.Context(), http.MethodPost, clientPath(args[0])+"/revoke", nil, nil); err != nil {
					return err
				}
				if std.JSON {
					return std.Print(map[string]any{"name": args[0], "revoked": true}, nil)
				}
				std.Say("%s is revoked.", args[0])
				return nil
			},
		},
		rotate,
	))
}

// printToken shows a token: on its own on standard output, so that it can be piped.
func printToken(std *stdio.Streams, t console.NewToken, note string) error {
	if err := std.Print(t, func(w io.Writer) { fmt.Fprintln(w, t.AuthToken) }); err != nil {
		return err
	}
	if !std.JSON {
		fmt.Fprintln(std.Err, note)
	}
	return nil
}

func clientRow(c console.Client) []any {
	seen := "never"
	if c.Seen != nil {
		seen = localtime.Minute(c.Seen.At)
	}
	return []any{c.Name, c.State, c.Sessions, c.Claims, len(c.Tokens), c.Usage.State, seen, localtime.Minute(c.CreatedAt)}
}
