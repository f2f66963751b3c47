package daemon

import (
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"adit/internal/paths"
	"adit/localapi/client"
)

// Whoever may not enter the service's state folder is to find its daemon too,
// wherever that listens.
func TestEverybodyLooksWhereTheServiceTellsItsAddress(t *testing.T) {
	t.Setenv(paths.EnvState, "")
	f := &Finder{Getenv: os.Getenv}
	told := func(at paths.Folders) bool { return at.State == paths.Public() && at.Config == paths.Service().Config }
	if all := f.installations(); !slices.ContainsFunc(all, told) {
		t.Errorf("got %+v, without %s", all, paths.Public())
	}
	t.Setenv(paths.EnvState, t.TempDir())
	if all := f.installations(); slices.ContainsFunc(all, told) {
		t.Errorf("got %+v, though another folder is meant", all)
	}
}

func TestAnotherProgramAtTheUsualAddressIsTold(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	f := &Finder{Getenv: os.Getenv}
	_, err := f.usual(t.Context(), other.URL)
	if err == nil {
		t.Fatal("another program was taken for the daemon")
	}
	if got := Explain(err); !strings.Contains(got, "not an adit daemon") || !strings.Contains(got, "--http_listen") {
		t.Errorf("got %q, want who is there and what to do", got)
	}
	if got := Explain(client.ErrNotRunning); !strings.Contains(got, "adit start") {
		t.Errorf("nobody there: got %q", got)
	}
}
