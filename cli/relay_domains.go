package cli

import (
	"net/url"

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

func relayReleaseCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	return a.flag(removal{
		use: "release TARGET", short: "Take a name or port from a client that does not use it now",
		example:  "  adit relay release shop\n  adit relay release tcp.20001",
		argument: "the name or port", key: "target", said: "%s is free: who asks first has it now.",
		path: func(target string) string { return "/api/v1/claims/" + url.PathEscape(target) },
	}.command(a))
}
