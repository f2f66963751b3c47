package paths

import (
	"path/filepath"
	"testing"
)

func TestEnvironmentMovesBothFolders(t *testing.T) {
	config, state := t.TempDir(), t.TempDir()
	t.Setenv(EnvConfig, config)
	t.Setenv(EnvState, state)
	want := Folders{Config: config, State: state}
	if got, err := Person(); err != nil || got != want {
		t.Errorf("Person: got %v, %v, want %v", got, err, want)
	}
	if got := Service(); got != want {
		t.Errorf("Service: got %v, want %v", got, want)
	}
	if got := States(); len(got) != 1 || got[0] != state {
		t.Errorf("States: got %v, want %v alone", got, state)
	}
}

func TestFoldersAreAbsoluteWithoutAnyEnvironment(t *testing.T) {
	for _, name := range []string{EnvConfig, EnvState, "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, "")
	}
	p, err := Person()
	if err != nil {
		t.Skipf("this account has no home: %v", err)
	}
	for _, dir := range []string{p.Config, p.State, Service().Config, Service().State} {
		if !filepath.IsAbs(dir) {
			t.Errorf("got %q, want an absolute path", dir)
		}
	}
	if got := States(); len(got) < 2 || got[0] != p.State {
		t.Errorf("States: got %v, want the person's first, then the service's", got)
	}
}
