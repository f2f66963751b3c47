package machine

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/cli/daemon"
	"adit/tray"
)

// answering runs a daemon that is found here, and whose local API says what answer has
// for a path.
func answering(t *testing.T, answer func(path string) string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			fmt.Fprint(w, `{"status":"ok","version":"v1.4.0"}`)
			return
		}
		text := answer(r.URL.Path)
		if strings.HasPrefix(text, `{"error"`) {
			w.WriteHeader(http.StatusBadRequest)
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	info := `{"connect_addr":"` + strings.TrimPrefix(server.URL, "http://") + `"}`
	if err := os.WriteFile(filepath.Join(dir, "runtime.json"), []byte(info), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ADIT_STATE_DIR", dir)
	t.Setenv("ADIT_CONFIG_DIR", dir)
	return server.URL
}

func TestConsoleProgramIsBesideTheTray(t *testing.T) {
	for exe, want := range map[string]string{"/opt/adit-tray.exe": "/opt/adit.exe", "/opt/adit": "/opt/adit", "/opt/ADIT-TRAY.EXE": "/opt/adit.exe"} {
		if got := consoleProgram(exe); got != want {
			t.Errorf("%s: got %s, want %s", exe, got, want)
		}
	}
}

// Another person's tray has no Bearer token where only root and the service may
// read it: the daemon is there all the same, and its Web UI asks for the token.
func TestTrayTellsADaemonThatAsksForATokenFromNone(t *testing.T) {
	url := answering(t, func(string) string {
		return `{"error":{"code":"unauthorized","message":"this API asks for a Bearer token"}}`
	})
	d := &trayDaemon{find: &daemon.Finder{Getenv: os.Getenv}}
	status, endpoints, err := d.Look(t.Context())
	if err != nil || status.State != tray.Locked || len(endpoints) != 0 {
		t.Errorf("got status %+v, endpoints %v, error %v; want the state locked", status, endpoints, err)
	}
	d.openBrowser = func(_ context.Context, address string) error {
		if address != url {
			t.Errorf("opened %s, want %s", address, url)
		}
		return nil
	}
	err = d.show(t.Context(), func(context.Context) error {
		t.Error("a daemon that runs was to be started")
		return context.Canceled
	})
	if err != nil {
		t.Errorf("show the Web UI: %v", err)
	}
}

// TestTrayIsToldOfServicesThatAreDown: the address answers, and nothing is behind it.
func TestTrayIsToldOfServicesThatAreDown(t *testing.T) {
	answering(t, func(path string) string {
		if path != "/api/v1/endpoints" {
			return `{"data":{}}`
		}
		return `{"data":{"items":[{"public_url":"https://a.example","state":"running","error":"nothing listens"},{"public_url":"https://b.example","state":"running","error":""},{"public_url":"https://c.example","state":"waiting","error":"nothing listens"}]}}`
	})
	_, endpoints, err := (&trayDaemon{find: &daemon.Finder{Getenv: os.Getenv}}).Look(t.Context())
	if err != nil || len(endpoints) != 3 || endpoints[0].State != tray.Down || endpoints[1].State != "running" || endpoints[2].State != "waiting" {
		t.Errorf("got %+v, %v", endpoints, err)
	}
}
