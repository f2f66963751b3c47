package cli

import (
	"slices"
	"strings"
	"testing"

	"adit/internal/paths"
	"adit/service"
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

// A service that is not there is not to be started, and of one that has failed the
// log is to be read.
func TestADaemonThatDoesNotRunIsStartedAsItIsInstalled(t *testing.T) {
	for state, want := range map[string]string{
		service.NotInstalled: "adit service install",
		service.Stopped:      "start its service with `adit service start`",
		service.Failed:       "its service is failed: the log says why",
		"":                   "start it with `adit start`",
	} {
		if got := howToStart(service.Status{State: state, Log: "the log"}); !strings.Contains(got, want) {
			t.Errorf("%q: got %q, want %q", state, got, want)
		}
	}
}
