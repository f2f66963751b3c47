package cli

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"adit/tunnel/relay/console"
)

func relayNodesCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	return a.flag(&cobra.Command{
		Use:   "nodes",
		Short: "Show the nodes of a running relay",
		Long: `Show the nodes of a running relay, as the one that answers sees them: what each
has to do, whether it ends, and whether it can be reached.`,
		Args: args(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list relayList[console.Node]
			if err := a.call(cmd.Context(), http.MethodGet, "/api/v1/nodes", nil, &list); err != nil {
				return err
			}
			return env.print(list, func(w io.Writer) { nodeTable(w, list.Items) })
		},
	})
}

func nodeTable(w io.Writer, list []console.Node) {
	fmt.Fprintln(w, "NAME\tID\tSTATE\tAGENTS\tENDPOINTS\tVISITORS\tFOR AGENTS\tVERSION\tSINCE")
	for _, n := range list {
		state := "serves"
		switch {
		case n.Draining:
			state = "ends"
		case !n.Reachable:
			state = "not reached"
		}
		name := n.Name
		if n.Self {
			name += " (this one)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", name, n.ID, state, n.Sessions, n.Endpoints, n.Visitors,
			n.AgentAddress, n.Version, n.StartedAt.In(zone).Format("2006-01-02 15:04"))
	}
}
