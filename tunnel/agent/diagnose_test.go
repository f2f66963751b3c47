package agent

import "testing"

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
	if got := results(); len(got) != 1 || got["state_folder"].Status != checkOK {
		t.Errorf("unconfigured: got %+v", got)
	}
	if _, err := a.Configure(t.Context(), r.token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	before := a.Status()
	got := results()
	for name, want := range map[string]string{
		"relay_tls": checkOK, "relay_udp": checkOK, "relay_answers": checkOK,
	} {
		if got[name].Status != want {
			t.Errorf("%s: got %+v, want %s", name, got[name], want)
		}
	}
	if after := a.Status(); after.State != before.State || !after.ConnectedSince.Equal(*before.ConnectedSince) {
		t.Errorf("the session changed: got %+v after %+v", after, before)
	}
}
