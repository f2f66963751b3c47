package command

import (
	"bytes"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"adit/cli/stdio"
	"adit/cli/terminal"
)

// fitHelp wraps the help's lists of commands and flags to the width of the screen.
func fitHelp(root *cobra.Command, std *stdio.Streams) {
	plain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if !std.Terminal {
			plain(cmd, args)
			return
		}
		var text bytes.Buffer
		cmd.SetOut(&text)
		plain(cmd, args)
		cmd.SetOut(std.Out)
		_, _ = io.WriteString(std.Out, fitted(text.String(), std.Size().Columns))
	})
}

// usageOfGroups removes from the usage of each group the claim that it could run without a
// subcommand. A custom template could do this too, but would force the linker to keep every method
// in the program: docs/decisions/0012-pages-without-templates.md.
func usageOfGroups(root *cobra.Command) {
	plain := root.UsageFunc()
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		if !cmd.HasAvailableSubCommands() {
			return plain(cmd)
		}
		out := cmd.OutOrStderr()
		var text bytes.Buffer
		cmd.SetOut(&text)
		err := plain(cmd)
		cmd.SetOut(out)
		_, _ = io.WriteString(out, strings.Replace(text.String(), "\n  "+cmd.UseLine()+"\n", "\n", 1))
		return err
	})
}

// StaysAsItIs is part of the help of commands that change something.
const StaysAsItIs = "Settings that no flag names stay as they are."

// WithoutDefaults removes the defaults from the flags' help: they apply to something new, but a
// change leaves whatever no flag names as it is.
func WithoutDefaults(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		f.Usage = ofNew.ReplaceAllString(f.Usage, "")
		if f.Value.Type() == "bool" {
			f.DefValue = "false" // of which the help says nothing
		}
	})
}

// ofNew matches the default in a flag's help.
var ofNew = regexp.MustCompile(` \(default [^)]*\)`)

// listed matches the beginning of a line that lists a command or a flag, up to its description.
var listed = regexp.MustCompile(`^ {2,}\S.*? {3,}`)

// fitted returns text with such lines wrapped between words, each continuing below the start of its
// description.
func fitted(text string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if begin := len(listed.FindString(line)); begin > 0 {
			line = terminal.Break(line, begin, columns)
		}
		b.WriteString(line)
	}
	return b.String()
}
