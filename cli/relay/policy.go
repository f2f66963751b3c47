package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/cli/policy"
	"adit/cli/stdio"
	"adit/tunnel/relay/console"
)

func policyCommand(std *stdio.Streams, getenv func(string) string) *cobra.Command {
	a := newRunning(std, getenv)
	return a.Flags(command.Group("policy", "Control who may use an endpoint", `Control who may use an endpoint. A target is a domain, one label below the
relay's domain, either of them with '*.' in front for a tunnel of all names
below it, tcp.PORT, udp.PORT, or CLIENT/NAME for a private tunnel.

`+policy.Fields,
		policySetCommand(a),
		&cobra.Command{
			Use:     "show TARGET",
			Short:   "Show a target's policy",
			Example: "  adit relay policy show shop --json > policy.json",
			Args:    command.Args(1, 1, "the target"),
			RunE: func(cmd *cobra.Command, args []string) error {
				p, err := a.policy(cmd.Context(), "", http.MethodGet, args[0], nil)
				if err != nil {
					return err
				}
				return std.Print(p, func(w io.Writer) { policy.Write(w, p.Policy) })
			},
		},
		listing[console.Policy]{
			use: "list", short: "List the policies", example: "  adit relay policy list",
			path: "/api/v1/policies", heading: "TARGET|CHANGED",
			row:  func(p console.Policy) []any { return []any{p.Target, localtime.Minute(p.ChangedAt)} },
			none: "There is no policy: everybody is let in everywhere.",
		}.command(a),
		removal{
			use: "delete TARGET", short: "Delete a target's policy, which allows everyone", example: "  adit relay policy delete shop",
			argument: "the target", key: "target", path: policyPath, said: "The policy of %s is deleted.",
		}.command(a),
		explainCommand(a),
	))
}

func policySetCommand(a *running) *cobra.Command {
	var wanted policy.Input
	cmd := &cobra.Command{
		Use:   "set TARGET [FILE]",
		Short: "Set a target's policy from a JSON file, or from standard input",
		Long:  "Set a target's policy from a JSON file, or from standard input.\n\n" + policy.Unseen + "\n\n" + policy.Fields,
		Example: `  echo '{"allow":["203.0.113.0/24"]}' | adit relay policy set shop
  adit relay policy set shop policy.json`,
		Args: command.Args(1, 2, "TARGET [FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wanted.Read(a.std.In, args[1:]); err != nil {
				return err
			}
			p, err := a.policy(cmd.Context(), wanted.ETag, http.MethodPut, args[0], wanted.Document)
			if err != nil {
				return err
			}
			return a.std.Print(p, func(w io.Writer) { fmt.Fprintf(w, "The policy of %s is now in force.\n", p.Target) })
		},
	}
	wanted.Flags(cmd)
	return cmd
}

// taggedPolicy is a policy with the ETag that policy set accepts.
type taggedPolicy struct {
	console.Policy
	ETag string `json:"etag,omitempty"`
}

func (a *running) policy(ctx context.Context, etag, method, target string, in any) (taggedPolicy, error) {
	var p taggedPolicy
	now, err := a.Replace(ctx, etag, method, policyPath(target), in, &p.Policy)
	p.ETag = now
	return p, err
}
