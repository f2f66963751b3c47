package cli

import (
	"context"
	"slices"
	"testing"

	"adit/tray"
)

func TestArgsFollowTheProgramsName(t *testing.T) {
	for _, tt := range []struct{ argv, want []string }{
		{[]string{"/usr/bin/adit", "status"}, []string{"status"}},
		{[]string{"/usr/bin/adit"}, nil},
		{[]string{`C:\Program Files\Adit\adit-tray.exe`}, []string{"tray"}},
		{[]string{`C:\Program Files\Adit\Adit-Tray.exe`, "--open"}, []string{"tray", "--open"}},
		{[]string{`C:\Program Files\Adit\adit.exe`, "service", "stop"}, []string{"service", "stop"}},
		{[]string{"/Applications/Adit.app/Contents/MacOS/adit"}, []string{"tray", "--open"}},
		{[]string{"/Applications/Adit.app/Contents/MacOS/adit", "-psn_0_12345"}, []string{"tray", "--open"}},
		{[]string{"/Applications/Adit.app/Contents/MacOS/adit", "start"}, []string{"start"}},
		{nil, nil},
	} {
		if got := Args(tt.argv); !slices.Equal(got, tt.want) {
			t.Errorf("%q: got %q, want %q", tt.argv, got, tt.want)
		}
	}
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
	d := newFakeDaemon(t)
	const refusal = `{"error":{"code":"unauthorized","message":"this API asks for a Bearer token"}}`
	for key := range d.answers {
		if key != "GET /healthz" {
			d.set(key, refusal)
		}
	}
	env, _, _ := testEnv("")
	daemon := &trayDaemon{env: env}
	status, endpoints, err := daemon.Look(t.Context())
	if err != nil || status.State != tray.Locked || len(endpoints) != 0 {
		t.Errorf("got status %+v, endpoints %v, error %v; want the state locked", status, endpoints, err)
	}
	env.OpenBrowser = func(_ context.Context, address string) error {
		if address != d.URL {
			t.Errorf("opened %s, want %s", address, d.URL)
		}
		return nil
	}
	err = daemon.show(t.Context(), func(context.Context) error {
		t.Error("a daemon that runs was to be started")
		return context.Canceled
	})
	if err != nil {
		t.Errorf("show the Web UI: %v", err)
	}
}

// TestTrayIsToldOfServicesThatAreDown: the address answers, and nothing is behind it.
func TestTrayIsToldOfServicesThatAreDown(t *testing.T) {
	d := newFakeDaemon(t)
	d.set("GET /api/v1/endpoints", `{"data":{"items":[{"public_url":"https://a.example","state":"running","error":"nothing listens"},{"public_url":"https://b.example","state":"running","error":""},{"public_url":"https://c.example","state":"waiting","error":"nothing listens"}]}}`)
	env, _, _ := testEnv("")
	_, endpoints, err := (&trayDaemon{env: env}).Look(t.Context())
	if err != nil || len(endpoints) != 3 || endpoints[0].State != tray.Down || endpoints[1].State != "running" || endpoints[2].State != "waiting" {
		t.Errorf("got %+v, %v", endpoints, err)
	}
}
