package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/stdio"
	"adit/internal/visible"
)

// Exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// ErrQuiet ends a command that has already reported what is wrong.
var ErrQuiet = errors.New("said already")

// Finish adds the common conventions to a complete tree of commands: --json, help, the commands
// help and completion, and messages for wrong flags.
func Finish(root *cobra.Command, std *stdio.Streams) {
	root.SetFlagErrorFunc(flagMistake)
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.PersistentFlags().BoolVar(&std.JSON, "json", false, "print JSON instead of text")
	// Flags are named like their config keys; hyphens are accepted too.
	root.SetGlobalNormalizationFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		return pflag.NormalizedName(strings.ReplaceAll(name, "-", "_"))
	})
	cobra.EnableCommandSorting = false // the tree's order is meant
	cobra.MousetrapHelpText = ""       // started from Windows' menu, adit tray must run
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd("completion")
	for _, c := range root.Commands() {
		switch c.Name() { // cobra's own show a page for any word, and call that done
		case "help":
			c.Run, c.RunE = nil, describe
			c.Short = "Show help for a command"
		case "completion":
			c.Args, c.RunE = nil, needsCommand
			c.Short = "Generate a completion script for a shell"
		}
	}
	usageOfGroups(root)
	fitHelp(root, std)
}

// Run runs one command line, without the program's name, in a tree that Finish has prepared, and
// returns the exit code. It writes what explain says about an error to std.Err, on one line.
func Run(ctx context.Context, root *cobra.Command, std *stdio.Streams, args []string, explain func(error) string) int {
	var began bool
	watch(root, &began)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	err, lost := std.Failure(err)
	if err == nil {
		return ExitDone
	}
	if errors.Is(err, ErrQuiet) {
		return ExitFailed
	}
	message := visible.Text(strings.ReplaceAll(strings.TrimSpace(explain(err)), "\n", " "))
	var usage *UsageError
	if !lost && (!began || errors.As(err, &usage)) {
		see := "; see"
		if strings.HasSuffix(message, "?") {
			see = " See"
		}
		fmt.Fprintf(std.Err, "adit: %s%s `%s`\n", message, see, usageHelp(cmd))
		return ExitUsage
	}
	fmt.Fprintf(std.Err, "adit: %s\n", message)
	return ExitFailed
}

// watch records when a command line has been understood and its command begins.
func watch(cmd *cobra.Command, began *bool) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*began = true
			return run(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		watch(child, began)
	}
}
