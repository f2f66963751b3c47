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
		Short: "Publish a service of this machine at a public URL",
		Long: `adit publishes a service of this machine at a public URL, through a relay that
you or somebody you trust runs.

A first look, without a relay of your own and without leaving this machine:

  adit dev 8000          a relay, the daemon and two tunnels to port 8000

With a relay and its token:

  adit login TOKEN       keeps the token
  adit https 3000        publishes port 3000 until Ctrl-C

For what shall stay:

  adit start             runs the daemon (or: adit service install)
  adit tunnel create 3000 --domain shop
                         publishes port 3000 for good

A flag is named as its configuration key; --local-port is --local_port, too.
Exit codes: 0 done, 1 failed, 2 wrong usage.`,
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
				return command.Usagef("--json needs a command, as adit status --json")
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVarP(&version, "version", "v", false, "show the version alone")
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
