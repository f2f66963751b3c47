package cli

import (
	"slices"
	"testing"

	"adit/internal/paths"
)

// Whoever may not enter the service's state folder is to find its daemon too,
// wherever that listens.
func TestEverybodyLooksWhereTheServiceTellsItsAddress(t *testing.T) {
	t.Setenv(paths.EnvState, "")
	env, _, _ := testEnv("")
	told := func(f paths.Folders) bool { return f.State == paths.Public() && f.Config == paths.Service().Config }
	if all := env.installations(); !slices.ContainsFunc(all, told) {
		t.Errorf("got %+v, without %s", all, paths.Public())
	}
	t.Setenv(paths.EnvState, t.TempDir())
	if all := env.installations(); slices.ContainsFunc(all, told) {
		t.Errorf("got %+v, though another folder is meant", all)
	}
}
