package cli

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestEveryCommandIsDocumented keeps docs/commands.md whole, and the help of
// each command useful.
func TestEveryCommandIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	env, _, _ := testEnv("")
	for _, cmd := range newRoot(env, env.streams()).Commands() {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" {
			continue
		}
		if name := cmd.Name(); !strings.Contains(string(text), "adit "+name) && !strings.Contains(string(text), `\|`+name) {
			t.Errorf("adit %s is not in docs/commands.md", name)
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("adit %s: got the short help %q, want a line without a full stop", cmd.Name(), cmd.Short)
		}
		for _, child := range cmd.Commands() {
			if child.Short == "" {
				t.Errorf("%s has no help", child.CommandPath())
			}
		}
	}
}

// TestEveryCommandHasAnExample holds that the help of each command that does
// something shows how, with a line that this command takes.
func TestEveryCommandHasAnExample(t *testing.T) {
	env, _, _ := testEnv("")
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if !cmd.IsAvailableCommand() || cmd.Name() == "help" || cmd.Name() == "completion" { // those two are cobra's
			return
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
		if !cmd.HasSubCommands() && cmd.Example == "" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Example) {
			if err := takesExample(cmd, line); err != nil {
				t.Errorf("%s: its example %q: %v", cmd.CommandPath(), line, err)
			}
		}
	}
	walk(newRoot(env, env.streams()))
}

// takesExample parses a shell's line with adit in it, as adit does.
func takesExample(cmd *cobra.Command, line string) error {
	line = regexp.MustCompile(`'[^']*'`).ReplaceAllString(line, "quoted")
	words := strings.Fields(regexp.MustCompile(`[|<>].*`).ReplaceAllString(line[max(0, strings.Index(line, "adit ")):], ""))
	if len(words) == 0 || words[0] != "adit" {
		return errors.New("it does not run adit")
	}
	env, _, _ := testEnv("")
	found, rest, err := newRoot(env, env.streams()).Find(words[1:])
	if err != nil {
		return err
	}
	if found.CommandPath() != cmd.CommandPath() {
		return fmt.Errorf("it is one of %s", found.CommandPath())
	}
	if err := found.ParseFlags(rest); err != nil {
		return err
	}
	return found.ValidateArgs(found.Flags().Args())
}

// TestFlagsAreInSnakeCase holds that a flag is named as its configuration key.
func TestFlagsAreInSnakeCase(t *testing.T) {
	env, _, _ := testEnv("")
	for _, cmd := range newRoot(env, env.streams()).Commands() {
		for line := range strings.SplitSeq(cmd.Flags().FlagUsages(), "\n") {
			_, name, ok := strings.Cut(line, "--")
			if !ok {
				continue
			}
			if name, _, _ = strings.Cut(name, " "); strings.Contains(name, "-") {
				t.Errorf("adit %s: the flag --%s is not in snake_case", cmd.Name(), name)
			}
		}
	}
}
