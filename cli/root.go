package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/daemon"
	"adit/internal/buildinfo"
	"adit/internal/visible"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Run runs one command line, without the program's name, and returns the exit code.
func Run(ctx context.Context, env *Env, args []string) int {
	root := newRoot(env)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	err, lost := env.std.Failure(err)
	if err == nil {
		return exitDone
	}
	if errors.Is(err, errQuiet) {
		return exitFailed
	}
	message := visible.Text(strings.ReplaceAll(strings.TrimSpace(daemon.Explain(err)), "\n", " "))
	var usage *usageError
	if !lost && (!env.ran || errors.As(err, &usage)) {
		after := "; "
		if strings.HasSuffix(message, "?") {
			after = " "
		}
		fmt.Fprintf(env.std.Err, "adit: %s%s`%s` shows how it is used\n", message, after, usageHelp(cmd))
		return exitUsage
	}
	fmt.Fprintf(env.std.Err, "adit: %s\n", message)
	return exitFailed
}

func newRoot(env *Env) *cobra.Command {
	env.std, env.find = env.streams(), &daemon.Finder{Getenv: env.Getenv, Inside: env.Inside}
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
				return noCommand(cmd, args[0])
			}
			switch {
			case version && env.std.JSON:
				return printVersion(env)
			case version:
				env.std.Say("adit version %s", buildinfo.Get().Version)
				return nil
			case env.std.JSON:
				return usagef("--json needs a command, as adit status --json")
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVarP(&version, "version", "v", false, "show the version alone")
	root.SetFlagErrorFunc(flagMistake)
	root.SetIn(env.std.In)
	root.SetOut(env.std.Out)
	root.SetErr(env.std.Err)
	root.PersistentFlags().BoolVar(&env.std.JSON, "json", false, "print one JSON document instead of text")
	// A flag is named as its config key; hyphens are taken too.
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "-", "_"))
	})
	cobra.EnableCommandSorting = false // the parts' order is a newcomer's way
	cobra.MousetrapHelpText = ""       // started from Windows' menu, adit tray must run
	for _, part := range parts {
		root.AddGroup(&cobra.Group{ID: part.id, Title: part.title})
		for _, command := range part.commands {
			c := command(env)
			c.GroupID = part.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("machine")
	root.SetCompletionCommandGroupID("machine")
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		switch c.Name() { // cobra's own show a page for any word, and call that done
		case "help":
			c.Run, c.RunE = nil, describe
			c.Short = "Show how a command is used"
		case "completion":
			c.Args, c.RunE = nil, needsCommand
			c.Short = "Make the completion script of a shell"
		}
	}
	env.watch(root)
	env.complete(root)
	usageOfGroups(root)
	env.fitHelp(root)
	return root
}

// watch notes when a command has been understood and begins.
func (e *Env) watch(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			e.ran = true
			return run(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		e.watch(child)
	}
}

// group is a command that only has others.
func group(use, short, long string, children ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: needsCommand,
	}
	g.AddCommand(children...)
	return g
}

// args checks how many there are, and names those that are missing. In names,
// what may be left out stands in square brackets at the end.
func args(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			needed, _, _ := strings.Cut(names, " [")
			return usagef("%s needs %s", cmd.CommandPath(), needed)
		case len(args) > most && most == 0:
			return usagef("%s takes no arguments, and %q is one", cmd.CommandPath(), args[0])
		case len(args) > most:
			return usagef("%s takes %s and no more, and %q is more", cmd.CommandPath(), names, args[most])
		}
		return nil
	}
}
