package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"adit/cli/command"
)

// TestHelpOfAGroupAsksForACommand: a group without one is wrong usage, so its help
// must not say that it takes flags alone.
func TestHelpOfAGroupAsksForACommand(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"tunnel", "--help"}, {"relay", "client", "--help"}} {
		_, out, _ := run(t, "", args...)
		path := strings.Join(append([]string{"adit"}, args[:len(args)-1]...), " ")
		if !strings.Contains(out, "Usage:\n  "+path+" [command]\n") {
			t.Errorf("%s: got %q, want no other usage than with a command", path, out)
		}
	}
	if _, out, _ := run(t, "", "status", "--help"); !strings.Contains(out, "Usage:\n  adit status [flags]\n") {
		t.Errorf("adit status: got %q, want its usage", out)
	}
}

// TestHelpOfAChangeHasNoDefaults: what no flag names stays as it is, and is not
// set to what a new one would have.
func TestHelpOfAChangeHasNoDefaults(t *testing.T) {
	for _, args := range []string{"tunnel update", "relay client set"} {
		_, out, _ := run(t, "", append(strings.Fields(args), "--help")...)
		if strings.Contains(out, "default") || !strings.Contains(out, "Settings that no flag names stay as they are") {
			t.Errorf("%s: got %q, want no default, and that what is not named stays", args, out)
		}
	}
	for _, args := range []string{"tunnel create", "relay client add"} {
		if _, out, _ := run(t, "", append(strings.Fields(args), "--help")...); !strings.Contains(out, "(default ") {
			t.Errorf("%s: got %q, want defaults", args, out)
		}
	}
}

// TestHelpFitsTheScreen looks at the help of every command on a screen of 80
// columns: but for examples, which are to be copied, nothing runs over its edge,
// and no word is lost.
func TestHelpFitsTheScreen(t *testing.T) {
	const columns = 80
	help := func(path []string, screen bool) string {
		env, out, _ := testEnv("")
		env.Terminal, env.Screen = screen, func() (int, int) { return columns, 24 }
		if code := Run(t.Context(), env, append(path, "--help")); code != command.ExitDone {
			t.Errorf("adit %s --help: got exit code %d", strings.Join(path, " "), code)
		}
		return out.String()
	}
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() && cmd.HasParent() {
			return
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		whole, fits := help(path, false), help(path, true)
		if strings.Join(strings.Fields(whole), " ") != strings.Join(strings.Fields(fits), " ") {
			t.Errorf("%s: the help on a screen says\n%s\nand elsewhere\n%s", cmd.CommandPath(), fits, whole)
		}
		if cmd.HasParent() && cmd.Parent().Name() == "completion" {
			return // cobra's own words
		}
		example := false
		for line := range strings.Lines(fits) {
			if example = line == "Examples:\n" || example && line != "\n"; example {
				continue
			}
			if utf8.RuneCountInString(strings.TrimSuffix(line, "\n")) > columns {
				t.Errorf("%s: %q is wider than %d columns", cmd.CommandPath(), line, columns)
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	env, _, _ := testEnv("")
	walk(newRoot(env, env.streams()))
}
