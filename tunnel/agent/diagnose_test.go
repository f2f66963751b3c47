package agent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"adit/tunnel/agent/diagnosis"
	"adit/tunnel/link"
)

func TestDiagnoseSaysWhatToDo(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := startAgent(t, Config{})
	results := func() map[string]diagnosis.Check {
		t.Helper()
		m := map[string]diagnosis.Check{}
		for _, c := range a.Diagnose(t.Context()) {
			m[c.Name] = c
			if c.Tried == "" || c.Result == "" || (c.Status == diagnosis.Failed) && c.Advice == "" {
				t.Errorf("%+v leaves something out", c)
			}
		}
		return m
	}
	if got := results(); len(got) != 1 || got["state_folder"].Status != diagnosis.OK {
		t.Errorf("unconfigured: got %+v", got)
	}
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	before := a.Status()
	got := results()
	for name, want := range map[string]string{
		"relay_tls": diagnosis.OK, "relay_udp": diagnosis.OK, "relay_answers": diagnosis.OK,
	} {
		if got[name].Status != want {
			t.Errorf("%s: got %+v, want %s", name, got[name], want)
		}
	}
	if after := a.Status(); after.State != before.State || !after.ConnectedSince.Equal(*before.ConnectedSince) {
		t.Errorf("the session changed: got %+v after %+v", after, before)
	}
}

func TestDiagnoseTriesToWriteIntoTheStateFolder(t *testing.T) {
	a, _ := startAgent(t, Config{})
	write, wrote := a.state.Write, 0
	full := errors.New("no space left on device")
	setWrite(a, func(path string, data []byte, perm os.FileMode) error {
		if err := write(path, data, perm); err != nil {
			return err
		}
		wrote = len(data)
		return full
	})
	got := a.Diagnose(t.Context())[0]
	setWrite(a, write)
	if wrote != 64<<10 || got.Status != diagnosis.Failed || !strings.Contains(got.Result, full.Error()) || !strings.Contains(got.Advice, "free some space") {
		t.Errorf("got %+v after %d bytes, want a failure that says why", got, wrote)
	}
	if got := a.Diagnose(t.Context())[0]; got.Status != diagnosis.OK {
		t.Errorf("got %+v once there is room", got)
	}
	left, err := filepath.Glob(filepath.Join(a.cfg.StateDir, ".check*"))
	if err != nil || len(left) != 0 {
		t.Errorf("it leaves %q, %v", left, err)
	}
}

// TestDiagnoseTellsABlockedTransportFromARelayThatIsAway has UDP, and then all,
// not reach the relay.
func TestDiagnoseTellsABlockedTransportFromARelayThatIsAway(t *testing.T) {
	r := newFakeRelay(t)
	var blocked atomic.Value // of []link.Transport
	blocked.Store([]link.Transport{})
	a, _ := startAgent(t, Config{Dial: func(ctx context.Context, cfg link.DialConfig) (link.Session, error) {
		if slices.Contains(blocked.Load().([]link.Transport), cfg.Transport) {
			return nil, context.DeadlineExceeded
		}
		return link.Dial(ctx, cfg)
	}})
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		blocked []link.Transport
		want    string
	}{
		{[]link.Transport{link.DTLS}, "blocks UDP"},
		{[]link.Transport{link.DTLS, link.TLS}, "TLS does not reach the relay either"},
	} {
		blocked.Store(test.blocked)
		found := false
		for _, c := range a.Diagnose(t.Context()) {
			if c.Name == "relay_udp" {
				found = true
				if c.Status != diagnosis.Warning || !strings.Contains(c.Advice, test.want) {
					t.Errorf("without %v: got %+v, want the advice %q", test.blocked, c, test.want)
				}
			}
		}
		if !found {
			t.Errorf("without %v: UDP was not looked at", test.blocked)
		}
	}
}
