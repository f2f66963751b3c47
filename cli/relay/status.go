package relay

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/tunnel/relay/console"
)

func statusCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(&cobra.Command{
		Use:   "status",
		Short: "Show a running relay, its agents and endpoints",
		Example: `  adit relay status
  ADIT_RELAY_ADMIN_URL=https://console.example.com ADIT_RELAY_ADMIN_TOKEN=… adit relay status`,
		Args: command.Args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var all struct {
				console.Status
				Sessions  []console.Session  `json:"sessions"`
				Endpoints []console.Endpoint `json:"endpoints"`
			}
			var sessions stdio.List[console.Session]
			var endpoints stdio.List[console.Endpoint]
			for path, out := range map[string]any{"status": &all.Status, "sessions": &sessions, "endpoints": &endpoints} {
				if err := a.Call(cmd.Context(), http.MethodGet, "/api/v1/"+path, nil, out); err != nil {
					return err
				}
			}
			all.Sessions, all.Endpoints = sessions.Items, endpoints.Items
			return std.PrintPage(all, func(w io.Writer) {
				s := all.Status
				fmt.Fprintf(w, "%s\t%s, version %s, since %s\n", s.Domain, s.State, s.Version, localtime.Minute(s.StartedAt))
				if text := storeText(s.Store); text != "" {
					fmt.Fprintf(w, "store\t%s\n", text)
				}
				fmt.Fprintf(w, "clients\t%d\nagents\t%d\n", s.Clients, s.Sessions)
				for _, x := range all.Sessions {
					tunnels := "tunnels"
					if x.Tunnels == 1 {
						tunnels = "tunnel"
					}
					fmt.Fprintf(w, "  %s\t%s, %s, %d %s\n", x.Client, x.Address, x.Transport, x.Tunnels, tunnels)
				}
				fmt.Fprintf(w, "endpoints\t%d\n", s.Endpoints)
				for _, x := range all.Endpoints {
					fmt.Fprintf(w, "  %s\t%d visitors now, %d in all\n", x.PublicURL, x.Connections.Open, x.Connections.Total)
				}
			})
		},
	})
}

// storeText says what is wrong with a relay's store, which visitors do not notice; empty
// if nothing is.
func storeText(condition string) string {
	switch condition {
	case "here":
		return ""
	case "away":
		return "away: it cannot be reached, and nothing can be changed"
	case "silent":
		return "silent: a part of it does not answer, and cannot be changed"
	case "full":
		return "full: it has no room for what is written, and nothing can be changed"
	case "lost":
		return "lost: what the relay kept in NATS is gone; bring a backup back"
	}
	return condition // of a relay that is older, and tells none, or newer
}
