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

// fitHelp breaks the help's lists of commands and flags where the screen ends.
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

// usageOfGroups leaves out of the usage of each group that it could run without a
// command. A template of our own could say so, and would have the linker keep
// every method of the program: docs/decisions/0012-pages-without-templates.md.
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

// StaysAsItIs belongs to the help of a command that changes something.
const StaysAsItIs = "Settings that no flag names stay as they are."

// WithoutDefaults takes from the flags' help what holds where something is made: a
// change leaves what no flag names as it is.
func WithoutDefaults(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		f.Usage = ofNew.ReplaceAllString(f.Usage, "")
		if f.Value.Type() == "bool" {
			f.DefValue = "false" // of which the help says nothing
		}
	})
}

// ofNew is what a flag's help says of a new one.
var ofNew = regexp.MustCompile(` \(default [^)]*\)`)

// listed is the beginning of a line that lists a command or a flag, up to what is
// said of it.
var listed = regexp.MustCompile(`^ {2,}\S.*? {3,}`)

// fitted is text with such lines broken between words, each under its beginning.
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
