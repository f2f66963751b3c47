package tunnel

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/daemon"
	"adit/cli/policy"
	"adit/cli/stdio"
	"adit/internal/visible"
	"adit/localapi/client"
)

func policyCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	return command.Group("policy", "Control who may use a tunnel", `Who is let in to a tunnel. The relay keeps others away, before a byte reaches
this machine. Setting it needs the leave of the relay's operator.

`+policy.Fields,
		&cobra.Command{
			Use: "show TUNNEL", Short: "Show who may use a tunnel", Example: "  adit tunnel policy show shop\n  adit tunnel policy show shop --json > policy.json",
			Args: command.Args(1, 1, "TUNNEL (its id, name or domain)"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return onPolicy(cmd.Context(), std, find, args[0], (*client.Client).TunnelPolicy)
			},
		},
		policySetCommand(std, find),
	)
}

func policySetCommand(std *stdio.Streams, find *daemon.Finder) *cobra.Command {
	var wanted policy.Input
	cmd := &cobra.Command{
		Use: "set TUNNEL [FILE]", Short: "Set who may use a tunnel, by a JSON file or standard input; {} allows everyone",
		Long: "Set who may use a tunnel, by a JSON file or standard input; {} allows everyone.\n\n" + policy.Unseen + "\n\n" + policy.Fields,
		Example: `  echo '{"allow":["203.0.113.0/24"]}' | adit tunnel policy set shop
  adit tunnel policy set shop policy.json`,
		Args: command.Args(1, 2, "TUNNEL (its id, name or domain) [FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wanted.Read(std.In, args[1:]); err != nil {
				return err
			}
			return onPolicy(cmd.Context(), std, find, args[0], func(c *client.Client, ctx context.Context, id string) (client.TaggedPolicy, error) {
				return daemon.Patiently(ctx, func() (client.TaggedPolicy, error) { return c.SetTunnelPolicy(ctx, id, wanted.Document, wanted.ETag) })
			})
		},
	}
	wanted.Flags(cmd)
	return cmd
}

// onPolicy calls do for the policy of the tunnel that the user named, and shows the result.
func onPolicy(ctx context.Context, std *stdio.Streams, find *daemon.Finder, name string, do func(*client.Client, context.Context, string) (client.TaggedPolicy, error)) error {
	c, id, err := named(ctx, find, name)
	if err != nil {
		return err
	}
	p, err := do(c, ctx, id)
	if err != nil {
		return err
	}
	return std.Print(p, func(w io.Writer) { writePolicy(w, p.TunnelPolicy) })
}

func writePolicy(w io.Writer, p client.TunnelPolicy) {
	policy.Write(w, p.Policy)
	switch {
	case p.Declared && p.SetBy != "operator":
		fmt.Fprintln(w, "adit.toml sets who may visit this tunnel; change it there.")
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
