package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/tunnel/relay/console"
)

func relayNodesCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	return a.flag(listing[console.Node]{
		use: "nodes", short: "Show the nodes of a running relay", example: "  adit relay nodes",
		long: `Show the nodes of a running relay, as the one that answers sees them: what each
has to do, whether it ends, and whether it can be reached.`,
		path: "/api/v1/nodes", heading: "NAME\tID\tSTATE\tAGENTS\tENDPOINTS\tVISITORS\tFOR AGENTS\tVERSION\tSINCE",
		row: nodeRow,
	}.command(a))
}

func nodeRow(w io.Writer, n console.Node) {
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
