package relay

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/stdio"
	"adit/cli/table"
	"adit/tunnel/relay/console"
)

func domainsCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(listing[console.Domain]{
		use: "domains", short: "List the names that clients have claimed, and how they were proved",
		example: "  adit relay domains",
		path:    "/api/v1/domains", heading: "DOMAIN|CLIENT|RUNNING|PROVED BY",
		narrower: []table.Step{table.Squeeze("CLIENT", 16)},
		row:      func(d console.Domain) []any { return []any{d.Domain, d.Client, yesNo(d.Running), d.Proof} },
		none:     "No client has a name now.",
	}.command(a))
}

func signOutCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(&cobra.Command{
		Use: "sign-out USER", Short: "Sign a visitor out everywhere",
		Long: `Sign a visitor out of all sites, on all nodes. USER is the name shown in the
access log or by the identity provider. The visitor can sign in again, unless a
policy or the provider prevents it.`,
		Example: "  adit relay sign-out ann@example.com",
		Args:    command.Args(1, 1, "the user, as an address"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var ended console.EndedSignIns
			if err := a.Call(cmd.Context(), http.MethodPost, "/api/v1/sign-ins/end", map[string]string{"user": args[0]}, &ended); err != nil {
				return err
			}
			if a.std.JSON {
				return a.std.Print(ended, nil)
			}
			a.std.Say("%s is signed out everywhere.", ended.User)
			return nil
		},
	})
}

func releaseCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(removal{
		use: "release TARGET", short: "Release a name or port that its client is not using",
		example:  "  adit relay release shop\n  adit relay release tcp.20001",
		argument: "the name or port", key: "target", said: "%s is free: who asks first has it now.",
		path: func(target string) string { return "/api/v1/claims/" + url.PathEscape(target) },
	}.command(a))
}
