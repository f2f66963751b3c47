package cli

import (
	"github.com/spf13/cobra"

	"adit/tunnel/relay/console"
)

func relayDomainsCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	return a.flag(listing[console.Domain]{
		use: "domains", short: "List the names that clients have, and how those of their own were proved",
		example: "  adit relay domains",
		path:    "/api/v1/domains", heading: "DOMAIN|CLIENT|RUNNING|PROVED BY",
		narrower: []step{squeeze("CLIENT", 16)},
		row:      func(d console.Domain) []any { return []any{d.Domain, d.Client, yesNo(d.Running), d.Proof} },
		none:     "No client has a name now.",
	}.command(a))
}
