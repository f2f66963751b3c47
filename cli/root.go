package cli

import (
	"context"

	"github.com/spf13/cobra"

	"adit/cli/command"
	"adit/cli/completion"
	"adit/cli/daemon"
	"adit/cli/stdio"
	"adit/internal/buildinfo"
)

// Run runs one command line, without the program's name, and returns the exit code.
func Run(ctx context.Context, env *Env, args []string) int {
	std := env.streams()
	return command.Run(ctx, newRoot(env, std), std, args, daemon.Explain)
}

// newRoot returns the tree of all commands, which write to std.
func newRoot(env *Env, std *stdio.Streams) *cobra.Command {
	find := env.finder()
	var version bool
	root := &cobra.Command{
		Use:   "adit",
		Short: "Publish a service on this machine at a public URL",
		Long: `adit publishes a service on this machine at a public URL, through a relay run by
you or somebody you trust.

To try it out, without a relay and without leaving this machine:

  adit dev 8000          run a relay, the daemon and two tunnels to port 8000

With a relay and a token for it:

  adit login TOKEN       save the token
  adit https 3000        publish port 3000 until Ctrl-C

To publish something permanently:

  adit start             run the daemon (or: adit service install)
  adit tunnel create 3000 --domain shop
                         publish port 3000 until you delete the tunnel

Flags have the names of configuration keys; --local-port and --local_port are
the same. Exit codes: 0 success, 1 failure, 2 wrong usage.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.NoCommand(cmd, args[0])
			}
			switch {
			case version && std.JSON:
				return printVersion(std)
			case version:
				std.Say("adit version %s", buildinfo.Get().Version)
				return nil
			case std.JSON:
				return command.Usagef("--json needs a command, such as adit status --json")
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVarP(&version, "version", "v", false, "print only the version")
	for _, part := range env.parts(std, find) {
		root.AddGroup(&cobra.Group{ID: part.id, Title: part.title})
		for _, c := range part.commands {
			c.GroupID = part.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("machine")
	root.SetCompletionCommandGroupID("machine")
	command.Finish(root, std)
	completion.Offer(root, find)
	return root
}
