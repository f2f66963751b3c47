package relay

import (
	"github.com/spf13/cobra"

	"adit/cli/localtime"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/tunnel/relay/console"
)

func nodesCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(listing[console.Node]{
		use: "nodes", short: "Show the nodes of a running relay", example: "  adit relay nodes",
		long: `Show the nodes of a running relay, as seen by the node that answers: how busy
each is, whether it is shutting down, and whether it can be reached. A node that
disappeared without notice is shown as lost for a day, or until it is back.`,
		path: "/api/v1/nodes", heading: "NAME|ID|STATE|AGENTS|ENDPOINTS|VISITORS|FOR AGENTS|VERSION|SINCE",
		narrower: []table.Step{table.Drop("ID"), table.Drop("SINCE"), table.Drop("VERSION"), table.Squeeze("NAME", 16), table.Drop("FOR AGENTS")},
		row:      nodeRow,
	}.command(a))
}

func nodeRow(n console.Node) []any {
	state := "serves"
	switch {
	case n.LostAt != nil:
		state = "lost " + localtime.Minute(*n.LostAt)
	case n.Draining:
		state = "ends"
	case !n.Reachable:
		state = "not reached"
	}
	name := n.Name
	if n.Self {
		name += " (this one)"
	}
	return []any{name, n.ID, state, n.Sessions, n.Endpoints, n.Visitors, n.AgentAddress, n.Version, localtime.Minute(n.StartedAt)}
}
