package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/localtime"
	"adit/tunnel/relay/console"
)

// policyFields is the help on what a policy may say.
const policyFields = `A policy is one JSON document. All of its fields are optional:

  deny, allow                           addresses and CIDRs; deny goes first
  deny_countries, allow_countries       as CN, or with a region as US-CA
  unknown_country                       deny (default) or allow
  hours                                 {"zone": "Europe/Berlin", "open": [{"days": ["mon"], "from": "08:00", "to": "18:00"}]}
  connections, connections_per_address  open at once
  rate, burst                           requests a second and address; how many at once
  bandwidth, max_body                   bytes a second; bytes of a request's body
  basic_auth                            [{"name":"ann","password":"…"}]
  sign_in                               {"provider": "company", "emails": ["ann@example.com", "@example.org"]}; also "groups", or "anyone": true
  client_certificates                   {"authorities": "-----BEGIN CERTIFICATE-----…", "names": ["ann@example.com"]}: who presents one of theirs
  webhooks                              [{"path": "/hooks/github", "provider": "github", "secrets": ["…"]}]: only signed ones are let in there
  shadow                                true: let all in, and record who would have been refused`

func relayPolicyCommand(env *Env) *cobra.Command {
	a := &relayAdmin{env: env}
	return a.flag(command.Group("policy", "Who is let in to an endpoint", `Who is let in to an endpoint. A target is a domain, one label under the relay's
domain, '*.' and either for a tunnel of all names below it, tcp.PORT or
udp.PORT, or a private tunnel as CLIENT/NAME.

`+policyFields,
		relayPolicySetCommand(env, a),
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
				return env.std.Print(p, func(w io.Writer) { writeDocument(w, p.Policy) })
			},
		},
		listing[console.Policy]{
			use: "list", short: "List the policies", example: "  adit relay policy list",
			path: "/api/v1/policies", heading: "TARGET|CHANGED",
			row:  func(p console.Policy) []any { return []any{p.Target, localtime.Minute(p.ChangedAt)} },
			none: "There is no policy: everybody is let in everywhere.",
		}.command(a),
		removal{
			use: "delete TARGET", short: "Delete a target's policy: everybody is let in", example: "  adit relay policy delete shop",
			argument: "the target", key: "target", path: policyPath, said: "The policy of %s is deleted.",
		}.command(a),
		relayExplainCommand(env, a),
	))
}

func relayPolicySetCommand(env *Env, a *relayAdmin) *cobra.Command {
	var wanted policyInput
	cmd := &cobra.Command{
		Use:   "set TARGET [FILE]",
		Short: "Set a target's policy from a JSON file, or from standard input",
		Long:  "Set a target's policy from a JSON file, or from standard input.\n\n" + policyUnseen + "\n\n" + policyFields,
		Example: `  echo '{"allow":["203.0.113.0/24"]}' | adit relay policy set shop
  adit relay policy set shop policy.json`,
		Args: command.Args(1, 2, "TARGET [FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wanted.read(env.std.In, args[1:]); err != nil {
				return err
			}
			p, err := a.policy(cmd.Context(), wanted.etag, http.MethodPut, args[0], wanted.document)
			if err != nil {
				return err
			}
			return env.std.Print(p, func(w io.Writer) { fmt.Fprintf(w, "The policy of %s is in force.\n", p.Target) })
		},
	}
	wanted.flag(cmd)
	return cmd
}

// taggedPolicy is a policy with the ETag that policy set takes.
type taggedPolicy struct {
	console.Policy
	ETag string `json:"etag,omitempty"`
}

func (a *relayAdmin) policy(ctx context.Context, etag, method, target string, in any) (taggedPolicy, error) {
	var p taggedPolicy
	now, err := a.replace(ctx, etag, method, policyPath(target), in, &p.Policy)
	p.ETag = now
	return p, err
}

func policyPath(target string) string { return "/api/v1/policies/" + url.PathEscape(target) }
