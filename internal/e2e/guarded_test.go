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
	guarded := func(when, url string) {
		t.Helper()
		for _, c := range []struct {
			password string
			want     int
		}{{"", 401}, {"wrong", 401}, {told.Password, 200}} {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			if c.password != "" {
				req.SetBasicAuth(told.User, c.password)
			}
			await(t, fmt.Sprintf("%s, with %q", when, c.password), func() error {
				resp, err := visitor.Do(req)
				if err != nil {
					return err
				}
				resp.Body.Close()
				if resp.StatusCode == 200 && c.want != 200 {
					t.Fatalf("%s: a visitor without the password was let in", when)
				}
				if resp.StatusCode != c.want {
					return fmt.Errorf("status %d", resp.StatusCode)
				}
				return nil
			})
		}
	}
	guarded("published", made.PublicURL)
	kept, err := os.ReadFile(filepath.Join(agent.dir, "state", "tunnels.json"))
	if err != nil || strings.Contains(string(kept), told.Password) {
		t.Errorf("the state has the password, or %v", err)
	}
	agent.proc.kill()
	relay.proc.kill()
	relay.start()
	agent.start()
	guarded("after both were killed", agent.awaitOnly(short, made.ID).PublicURL)
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
