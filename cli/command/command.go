// Package command defines the conventions of the command line: how commands are grouped, which
// arguments they accept, how mistakes are reported, how help reads, and the exit codes. What each
// command is and does is left to the other packages.
package command

import (
	"strings"

	"github.com/spf13/cobra"
)

// Group returns a command that only has subcommands.
func Group(use, short, long string, children ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{
		Use: use, Short: short, Long: long,
		RunE: needsCommand,
	}
	g.AddCommand(children...)
	return g
}

// Args checks the number of arguments, and names missing ones. In names, optional arguments come
// last, in square brackets.
func Args(least, most int, names string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			needed, _, _ := strings.Cut(names, " [")
			return Usagef("%s needs %s", cmd.CommandPath(), needed)
		case len(args) > most && most == 0:
			return Usagef("%s takes no arguments, but got %q", cmd.CommandPath(), args[0])
		case len(args) > most:
			return Usagef("%s takes only %s, but also got %q", cmd.CommandPath(), names, args[most])
		}
		return nil
	}
}

// CheckLimit refuses an impossible --limit.
func CheckLimit(n int) error {
	if n < 1 {
		return Usagef("--limit must be 1 or more, not %d", n)
	}
	return nil
}

// QuotedTag returns an ETag with its quotes, which a shell may have removed.
func QuotedTag(etag string) string {
	if etag == "" || etag == "*" || strings.HasSuffix(etag, `"`) {
		return etag
	}
	return `"` + etag + `"`
}
