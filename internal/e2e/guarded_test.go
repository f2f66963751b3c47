package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// awaitGuarded waits until visitors with the password are let in, and those without one
// or with the wrong one are asked for it; such a one must never be let in.
func awaitGuarded(t *testing.T, when string, visitor *http.Client, url, user, password, wrong string) {
	t.Helper()
	for _, given := range []string{"", wrong, password} {
		want := http.StatusUnauthorized
		if given == password {
			want = http.StatusOK
		}
		await(t, fmt.Sprintf("%s, with %q", when, given), func() error {
			status, err := visitAs(t, visitor, url, user, given)
			if status == http.StatusOK && status != want {
				t.Fatalf("%s: a visitor without the password was let in", when)
			}
			if err == nil && status != want {
				err = fmt.Errorf("status %d", status)
			}
			return err
		})
	}
}

// visitAs is the status of a visit, with a password unless that is empty.
func visitAs(t *testing.T, visitor *http.Client, url, user, password string) (int, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if password != "" {
		req.SetBasicAuth(user, password)
	}
	resp, err := visitor.Do(req)
	if err != nil {
		return 0, err
	}
	resp.Body.Close()
	return resp.StatusCode, nil
}

// TestShortFormAsksVisitorsForAPassword: with the leave of the relay's operator alone,
// also after both sides were killed, and with nothing left in the end.
func TestShortFormAsksVisitorsForAPassword(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	port := fmt.Sprint(newOrigin(t))
	r := run(t, agent.env, "http", port, "--domain", "shop", "--password")
	if r.code != 1 || !strings.Contains(r.stderr, "adit relay client set laptop --own_policies") {
		t.Errorf("without leave: exit code %d, %s", r.code, r.stderr)
	}
	if all := agent.tunnels(); len(all) != 0 {
		t.Errorf("without leave there is %+v", all)
	}
	must(t, nil, "relay", "client", "set", "laptop", "--own_policies", "--data_dir", relay.dir)

	short, made := agent.short("http", port, "--domain", "shop", "--password", "--json")
	var told struct{ User, Password string }
	if err := json.NewDecoder(strings.NewReader(short.stdout.String())).Decode(&told); err != nil || told.User == "" || len(told.Password) < 12 {
		t.Fatalf("it says %s, %v", short.stdout.String(), err)
	}
	visitor := relay.visitor()
	awaitGuarded(t, "published", visitor, made.PublicURL, told.User, told.Password, "wrong")
	kept, err := os.ReadFile(filepath.Join(agent.dir, "state", "tunnels.json"))
	if err != nil || strings.Contains(string(kept), told.Password) {
		t.Errorf("the state has the password, or %v", err)
	}
	agent.proc.kill()
	relay.proc.kill()
	relay.start()
	agent.start()
	awaitGuarded(t, "after both were killed", visitor, agent.awaitOnly(short, made.ID).PublicURL, told.User, told.Password, "wrong")
	if code := short.stop(); code != 0 {
		t.Errorf("the short form ended with exit code %d and %s", code, short.stderr.String())
	}
	await(t, "nothing is left", func() error {
		if left := must(t, nil, "relay", "policy", "list", "--json", "--data_dir", relay.dir); !strings.Contains(left, `"items": []`) {
			return fmt.Errorf("the relay has %s", left)
		}
		return nil
	})
}

// TestDeclaredPasswordHolds has adit.toml ask visitors for a password that is in a file:
// not without leave, after a change of it, when both sides were killed, and whatever
// others set, but for the operator.
func TestDeclaredPasswordHolds(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	secret := filepath.Join(t.TempDir(), "password")
	write := func(password string) {
		t.Helper()
		if err := os.WriteFile(secret, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	only := func(state string) (got tunnel) {
		t.Helper()
		await(t, "the tunnel is "+state, func() error {
			all := agent.tunnels()
			if len(all) != 1 || all[0].State != state {
				return fmt.Errorf("there is %+v", all)
			}
			got = all[0]
			return nil
		})
		return got
	}
	write("one")
	agent.declare("[[tunnel]]\nname = \"shop\"\ntype = \"http\"\nlocal_port = %d\ndomain = \"shop\"\npolicy = { basic_auth = [{ name = \"ann\", password_file = %q }] }\n",
		newOrigin(t), secret)
	agent.configure(relay.client("laptop"))
	if got := only("failed"); !strings.Contains(fmt.Sprint(got.Error), "adit relay client set laptop --own_policies") {
		t.Errorf("without leave it says %v", got.Error)
	}
	must(t, nil, "relay", "client", "set", "laptop", "--own_policies", "--data_dir", relay.dir)
	agent.ok(http.StatusOK, "POST", "/api/v1/reconnect", nil, nil)
	visitor, url := relay.visitor(), only("running").PublicURL
	awaitGuarded(t, "declared", visitor, url, "ann", "one", "two")

	write("two")
	await(t, "the new password is known", func() error {
		if status, err := visitAs(t, visitor, url, "ann", "two"); err != nil || status != http.StatusOK {
			return fmt.Errorf("status %d, %v", status, err)
		}
		return nil
	})
	awaitGuarded(t, "with another password", visitor, url, "ann", "two", "one")
	other := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(other, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := run(t, agent.env, "tunnel", "policy", "set", "shop", other); r.code != 1 || !strings.Contains(r.stderr, "adit.toml sets who may visit") {
		t.Errorf("adit tunnel policy set: exit code %d, %s", r.code, r.stderr)
	}
	if shown := must(t, agent.env, "tunnel", "policy", "show", "shop"); !strings.Contains(shown, "adit.toml sets who may visit") || !strings.Contains(shown, "ann") {
		t.Errorf("adit tunnel policy show: %s", shown)
	}

	agent.proc.kill()
	relay.proc.kill()
	relay.start()
	agent.start()
	only("running")
	awaitGuarded(t, "after both were killed", visitor, url, "ann", "two", "one")
	if sets := strings.Count(must(t, nil, "relay", "audit", "list", "--json", "--data_dir", relay.dir), `"policy.set"`); sets != 2 {
		t.Errorf("the policy was set %d times, want 2: once for each password", sets)
	}

	if err := os.WriteFile(other, []byte(`{"deny":["127.0.0.1","::1"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	must(t, nil, "relay", "policy", "set", "shop.localhost", other, "--data_dir", relay.dir)
	agent.ok(http.StatusOK, "POST", "/api/v1/reconnect", nil, nil)
	only("running")
	await(t, "the operator's policy holds", func() error {
		if status, err := visitAs(t, visitor, url, "ann", "two"); err != nil || status != http.StatusForbidden {
			return fmt.Errorf("status %d, %v", status, err)
		}
		return nil
	})
}
