package cli

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/localapi/client"
)

func tunnelPolicyCommand(env *Env) *cobra.Command {
	run := func(set bool) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			c, err := env.client(ctx)
			if err != nil {
				return err
			}
			id, err := findTunnel(ctx, c, args[0])
			if err != nil {
				return err
			}
			var p client.TunnelPolicy
			if set {
				text, err := readPolicy(env, args[1:])
				if err != nil {
					return err
				}
				var document map[string]any
				if err := json.Unmarshal(text, &document); err != nil || document == nil {
					return fmt.Errorf("the policy is not a JSON object, as {%q: [%q]}", "allow", "203.0.113.0/24")
				}
				p, err = patiently(ctx, func() (client.TunnelPolicy, error) { return c.SetTunnelPolicy(ctx, id, document) })
				if err != nil {
					return err
				}
			} else if p, err = c.TunnelPolicy(ctx, id); err != nil {
				return err
			}
			return env.print(p, func(w io.Writer) { writePolicy(w, p) })
		}
	}
	return group("policy", "Who is let in to a tunnel", `Who is let in to a tunnel. The relay keeps others away, before a byte reaches
this machine. Setting it needs the leave of the relay's operator.

`+policyFields,
		&cobra.Command{
			Use: "show TUNNEL", Short: "Show who is let in to a tunnel", Example: "  adit tunnel policy show shop",
			Args: args(1, 1, "TUNNEL (its id or name)"), RunE: run(false),
		},
		&cobra.Command{
			Use: "set TUNNEL [FILE]", Short: "Set who is let in, from a JSON file or standard input; {} lets everybody in",
			Long:    "Set who is let in, from a JSON file or standard input; {} lets everybody in.\n\n" + policyFields,
			Example: `  echo '{"allow":["203.0.113.0/24"]}' | adit tunnel policy set shop`,
			Args:    args(1, 2, "TUNNEL (its id or name) and a file"), RunE: run(true),
		},
	)
}

func writePolicy(w io.Writer, p client.TunnelPolicy) {
	text, err := json.MarshalIndent(p.Policy, "", "  ")
	if err != nil {
		text = []byte("{}")
	}
	fmt.Fprintf(w, "%s\n", text)
	switch {
	case p.SetBy != "" && p.Editable:
		fmt.Fprintf(w, "Set by %s; you may change it.\n", p.SetBy)
	case p.SetBy != "":
		fmt.Fprintf(w, "Set by %s.\n", p.SetBy)
	case p.Editable:
		fmt.Fprintln(w, "Everybody is let in; you may set a policy.")
	default:
		fmt.Fprintln(w, "Everybody is let in.")
	}
}
