package agent

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TestADeclaredPolicyHolds declares a tunnel with a password again and again. Only a new
// password is claimed anew, and adit.toml is the one place to change it.
func TestADeclaredPolicyHolds(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePolicies, wire.FeaturePolicyHolds)
	r.set(func() {
		r.onPolicy = func(w http.ResponseWriter, _ *http.Request) {
			answer(w, http.StatusOK, wire.Policy{Editable: true})
		}
	})
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	id := declaredID("shop")
	declare := func(password string) (policy string) {
		t.Helper()
		spec := definition.Tunnel{Name: "shop", LocalPort: 80, Policy: json.RawMessage(`{"basic_auth":[{"name":"ann","password":"` + password + `"}]}`)}
		if err := a.Declare(t.Context(), []definition.Tunnel{spec}); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the relay has what is declared", func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.tunnels[id].first.by(a.cur, a.tunnels[id].rev)
		})
		c, _ := r.claim(id)
		var d struct {
			Users []struct{ Password, Hash string } `json:"basic_auth"`
		}
		if err := json.Unmarshal(c.Policy, &d); err != nil || len(d.Users) != 1 || d.Users[0].Password != "" || !strings.HasPrefix(d.Users[0].Hash, "$argon2id$") {
			t.Fatalf("claimed %s, %v", c.Policy, err)
		}
		if !c.PolicyHolds {
			t.Error("what is declared is claimed as a policy that gives way")
		}
		return string(c.Policy)
	}
	rev := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.tunnels[id].rev
	}
	first := declare("one")
	before := rev()
	if again := declare("one"); again != first || rev() != before {
		t.Errorf("the same password is claimed anew: %s, then %s", first, again)
	}
	second := declare("two")
	if second == first {
		t.Error("another password is claimed as the one before")
	}
	if p, err := a.Policy(t.Context(), id); err != nil || p.Editable || !p.Declared {
		t.Errorf("it is shown as %+v, %v", p, err)
	}
	_, err := a.SetPolicy(t.Context(), id, json.RawMessage(`{}`), nil)
	wantCode(t, err, refusal.CodeInvalidParameter, "id")
	stop()
	a, _ = startAgent(t, Config{StateDir: dir})
	if again := declare("two"); again != second {
		t.Errorf("after a restart the same password is claimed as %s, and was %s", again, second)
	}
	if err := a.Declare(t.Context(), []definition.Tunnel{{Name: "shop", LocalPort: 80}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the claim without a policy", func() bool {
		c, _ := r.claim(id)
		return len(c.Policy) == 0 && !c.PolicyHolds
	})
	if _, err := a.SetPolicy(t.Context(), id, json.RawMessage(`{"rate":1}`), nil); err != nil {
		t.Errorf("a policy that is declared no more cannot be set: %v", err)
	}
}

// TestTunnelsThatAreNotDeclaredBringNoPolicyThatHolds: what was set since is newer.
func TestTunnelsThatAreNotDeclaredBringNoPolicyThatHolds(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePolicies, wire.FeaturePolicyHolds)
	a, _ := configured(t, r, Config{})
	made := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Policy: json.RawMessage(`{"rate":1}`)})
	if c, _ := r.claim(made.ID); c.PolicyHolds || len(c.Policy) == 0 {
		t.Errorf("claimed %+v", c)
	}
}

// TestARelayThatHoldsNoDeclaredPolicyServesNoSuchTunnel: it would keep one from before.
func TestARelayThatHoldsNoDeclaredPolicyServesNoSuchTunnel(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePolicies)
	a, _ := configured(t, r, Config{})
	if err := a.Declare(t.Context(), []definition.Tunnel{{Name: "shop", LocalPort: 80, Policy: json.RawMessage(`{"rate":1}`)}}); err != nil {
		t.Fatal(err)
	}
	if got := wantTunnel(t, a, declaredID("shop"), TunnelFailed); !strings.Contains(got.Error, "policies declared") {
		t.Errorf("it says %q", got.Error)
	}
	if _, claimed := r.claim(declaredID("shop")); claimed {
		t.Error("the relay was asked for it")
	}
}
