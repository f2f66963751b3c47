package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/internal/visible"
	"adit/localapi/client"
)

func tunnelPolicyCommand(env *Env) *cobra.Command {
	return command.Group("policy", "Who is let in to a tunnel", `Who is let in to a tunnel. The relay keeps others away, before a byte reaches
this machine. Setting it needs the leave of the relay's operator.

`+policyFields,
		&cobra.Command{
			Use: "show TUNNEL", Short: "Show who is let in to a tunnel", Example: "  adit tunnel policy show shop\n  adit tunnel policy show shop --json > policy.json",
			Args: command.Args(1, 1, "TUNNEL (its id, name or domain)"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return env.onPolicy(cmd.Context(), args[0], (*client.Client).TunnelPolicy)
			},
		},
		tunnelPolicySetCommand(env),
	)
}

func tunnelPolicySetCommand(env *Env) *cobra.Command {
	var wanted policyInput
	cmd := &cobra.Command{
		Use: "set TUNNEL [FILE]", Short: "Set who is let in, from a JSON file or standard input; {} lets everybody in",
		Long: "Set who is let in, from a JSON file or standard input; {} lets everybody in.\n\n" + policyUnseen + "\n\n" + policyFields,
		Example: `  echo '{"allow":["203.0.113.0/24"]}' | adit tunnel policy set shop
  adit tunnel policy set shop policy.json`,
		Args: command.Args(1, 2, "TUNNEL (its id, name or domain) [FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wanted.read(env.std.In, args[1:]); err != nil {
				return err
			}
			return env.onPolicy(cmd.Context(), args[0], func(c *client.Client, ctx context.Context, id string) (client.TaggedPolicy, error) {
				return daemon.Patiently(ctx, func() (client.TaggedPolicy, error) { return c.SetTunnelPolicy(ctx, id, wanted.document, wanted.etag) })
			})
		},
	}
	wanted.flag(cmd)
	return cmd
}

// onPolicy does something with the policy of the tunnel that a person named, and
// shows it.
func (e *Env) onPolicy(ctx context.Context, named string, do func(*client.Client, context.Context, string) (client.TaggedPolicy, error)) error {
	c, id, err := e.tunnelNamed(ctx, named)
	if err != nil {
		return err
	}
	p, err := do(c, ctx, id)
	if err != nil {
		return err
	}
	return e.std.Print(p, func(w io.Writer) { writePolicy(w, p.TunnelPolicy) })
}

// writeDocument writes a policy's document for a person. JSON leaves some of what a
// screen would obey as it is.
func writeDocument(w io.Writer, policy any) {
	text, err := json.MarshalIndent(policy, "", "  ")
	if err != nil {
		text = []byte("{}")
	}
	fmt.Fprintln(w, visible.Lines(string(text)))
}

func writePolicy(w io.Writer, p client.TunnelPolicy) {
	writeDocument(w, p.Policy)
	switch {
	case p.SetBy != "" && p.Editable:
		fmt.Fprintf(w, "Set by %s; you may change it.\n", visible.Text(p.SetBy))
	case p.SetBy != "":
		fmt.Fprintf(w, "Set by %s.\n", visible.Text(p.SetBy))
	case p.Editable:
		fmt.Fprintln(w, "Everybody is let in; you may set a policy.")
	default:
		fmt.Fprintln(w, "Everybody is let in.")
	}
}
