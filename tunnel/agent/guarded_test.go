package agent

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TestPolicyIsClaimedWithItsTunnel creates a tunnel that brings its policy, changes its
// name, starts the agent anew, and then lets everybody in.
func TestPolicyIsClaimedWithItsTunnel(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePolicies)
	r.set(func() {
		r.onPolicy = func(w http.ResponseWriter, q *http.Request) {
			var document json.RawMessage
			_ = json.NewDecoder(q.Body).Decode(&document)
			answer(w, http.StatusOK, wire.Policy{Document: document})
		}
	})
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	const password = "correct horse"
	made := mustCreate(t, a, definition.Tunnel{
		LocalPort: 80, Domain: "shop", Policy: json.RawMessage(`{"allow": ["192.0.2.1"], "basic_auth": [{"name": "ann", "password": "` + password + `"}]}`),
	})
	check := func(when string, replaces bool) {
		t.Helper()
		c, _ := r.claim(made.ID)
		var d struct {
			Allow []string                                `json:"allow"`
			Users []struct{ Name, Password, Hash string } `json:"basic_auth"`
		}
		if err := json.Unmarshal(c.Policy, &d); err != nil || len(d.Allow) != 1 || len(d.Users) != 1 {
			t.Fatalf("%s: claimed %s, %v", when, c.Policy, err)
		}
		if u := d.Users[0]; u.Name != "ann" || u.Password != "" || bcrypt.CompareHashAndPassword([]byte(u.Hash), []byte(password)) != nil {
			t.Errorf("%s: the user is %+v", when, u)
		}
		if c.PolicyReplaces != replaces {
			t.Errorf("%s: it replaces what is there: %v", when, c.PolicyReplaces)
		}
	}
	check("created", true)
	port, domain := 81, "other"
	change := func(p definition.Patch) {
		t.Helper()
		if _, err := a.Change(t.Context(), made.ID, p); err != nil {
			t.Fatal(err)
		}
	}
	change(definition.Patch{HostHeader: new("inner.example"), LocalPort: &port})
	check("changed", false)
	change(definition.Patch{Domain: &domain})
	check("with another name", true)
	if c, _ := r.claim(made.ID); !strings.HasPrefix(c.PolicyOf, "shop.") {
		t.Errorf("with another name: it had %q", c.PolicyOf)
	}
	domain = ""
	change(definition.Patch{Domain: &domain})
	if c, _ := r.claim(made.ID); !strings.HasPrefix(c.PolicyOf, "other.") || c.Domain != "" {
		t.Errorf("with any name: it claims %q and had %q", c.Domain, c.PolicyOf)
	}
	stop()
	if kept, err := os.ReadFile(filepath.Join(dir, "tunnels.json")); err != nil || strings.Contains(string(kept), password) {
		t.Errorf("the state has the password, or %v", err)
	}
	a, stop = startAgent(t, Config{StateDir: dir})
	wantTunnel(t, a, made.ID, TunnelRunning)
	check("after a restart", false)
	for _, of := range [][2]string{
		{`{"rate": 1}`, `{"rate":1}`},
		{`{"basic_auth":[{"name":"eve"}]}`, `{"rate":1}`}, // whose password is not known here
		{`{}`, ""},
	} {
		document, want := of[0], of[1]
		if _, err := a.SetPolicy(t.Context(), made.ID, json.RawMessage(document), nil); err != nil {
			t.Fatal(err)
		}
		a.mu.Lock()
		before := a.cur
		a.mu.Unlock()
		if _, err := a.Reconnect(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A claim that a session has under way when it is left may come after the next one's.
		eventually(t, "the tunnel is claimed anew after "+document, func() bool {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.cur != before && a.tunnels[made.ID].first.live == a.cur
		})
		if c, _ := r.claim(made.ID); string(c.Policy) != want {
			t.Errorf("after %s it is claimed with %s, want %s", document, c.Policy, want)
		}
	}
	stop()
	a, _ = startAgent(t, Config{StateDir: dir})
	wantTunnel(t, a, made.ID, TunnelRunning)
	if c, _ := r.claim(made.ID); len(c.Policy) > 0 {
		t.Errorf("everybody was let in, and now %s", c.Policy)
	}
}

// TestPoliciesThatNoTunnelBrings goes through those that are refused before the relay
// is asked, and those that are none.
func TestPoliciesThatNoTunnelBrings(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePolicies)
	a, _ := configured(t, r, Config{})
	long := strings.Repeat("x", 73)
	for policy, ok := range map[string]bool{
		`{}`: true, ` { } `: true,
		`null`: false, `[]`: false, `"x"`: false,
		`{"basic_auth":[{"name":"a","password":"` + long + `"}]}`: false,
		`{"deny":["` + strings.Repeat("192.0.2.1 ", 5000) + `"]}`: false,
	} {
		made, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80, Policy: json.RawMessage(policy)})
		if ok {
			if c, _ := r.claim(made.ID); err != nil || c.Policy != nil || c.PolicyReplaces {
				t.Errorf("%s: claimed %s, %v", policy, c.Policy, err)
			}
			continue
		}
		var no *refusal.Error
		if !errors.As(err, &no) || no.Code != refusal.CodeInvalidParameter || no.Field != "policy" || strings.Contains(no.Message, long) {
			t.Errorf("%.40s: got %v", policy, err)
		}
	}
}

// TestARelayThatGuardsNoTunnelFromTheBeginningIsNotAsked: it would let everybody in.
func TestARelayThatGuardsNoTunnelFromTheBeginningIsNotAsked(t *testing.T) {
	r := newFakeRelay(t)
	r.does("another")
	a, _ := configured(t, r, Config{})
	_, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 80, Policy: json.RawMessage(`{"rate":1}`)})
	wantCode(t, err, refusal.CodeRelayRejected, "policy")
	if n := len(a.Tunnels()); n != 0 {
		t.Errorf("there are %d tunnels", n)
	}
}
