package agent

import (
	"net"
	"testing"
)

func TestDiagnoseSaysWhatToDo(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := startAgent(t, Config{})
	results := func() map[string]Check {
		t.Helper()
		m := map[string]Check{}
		for _, c := range a.Diagnose(t.Context()) {
			m[c.Name] = c
			if c.Tried == "" || c.Result == "" || (c.Status == checkFailed) && c.Advice == "" {
				t.Errorf("%+v leaves something out", c)
			}
		}
		return m
	}
	if got := results(); got["auth_token"].Status != checkFailed || got["state_folder"].Status != checkOK {
		t.Errorf("unconfigured: got %+v", got)
	}
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	up := mustCreate(t, a, TunnelSpec{Type: "tcp", LocalPort: origin(t, echo)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	down := mustCreate(t, a, TunnelSpec{Type: "tcp", LocalPort: port})
	before := a.Status()
	got := results()
	for name, want := range map[string]string{
		"auth_token": checkOK, "relay_name": checkSkipped, "relay_tls": checkOK, "session": checkOK, "relay_answers": checkOK,
		"origin_" + up.ID: checkOK, "origin_" + down.ID: checkFailed,
	} {
		if got[name].Status != want {
			t.Errorf("%s: got %+v, want %s", name, got[name], want)
		}
	}
	if after := a.Status(); after.State != before.State || !after.ConnectedSince.Equal(*before.ConnectedSince) {
		t.Errorf("the session changed: got %+v after %+v", after, before)
	}
}
