package cli

import (
	"os"
	"strings"
	"testing"
)

// TestEveryCommandIsDocumented keeps docs/commands.md whole, and the help of
// each command useful.
func TestEveryCommandIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	env, _, _ := testEnv("")
	for _, cmd := range newRoot(env).Commands() {
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

// TestFlagsAreInSnakeCase holds that a flag is named as its configuration key.
func TestFlagsAreInSnakeCase(t *testing.T) {
	env, _, _ := testEnv("")
	for _, cmd := range newRoot(env).Commands() {
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
