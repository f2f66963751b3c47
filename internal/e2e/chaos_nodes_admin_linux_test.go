package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// administrator changes clients, policies and scopes at nodes that it picks at
// random, and keeps book of what it was told.
type administrator struct {
	t      *testing.T
	nodes  []*relay
	client *http.Client
	fenced string // a policy's target

	end  context.CancelFunc
	wg   sync.WaitGroup
	next int
	// may is what each thing may be now: one state if the administrator was told,
	// several if an answer was lost.
	may    map[string][]string
	unsure map[string]func() (refused bool, err error) // changes whose answers were lost, to make again
	done   map[string]int
}

func newAdministrator(t *testing.T, nodes []*relay) *administrator {
	a := &administrator{t: t, nodes: nodes, may: map[string][]string{}, unsure: map[string]func() (bool, error){}, done: map[string]int{}}
	a.client = &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	t.Cleanup(func() {
		if a.end != nil {
			a.end()
			a.wg.Wait()
		}
	})
	return a
}

// ask makes a request of a node's console; an answer that is not a success is an
// error, and refused tells that nothing was done.
func (a *administrator) ask(ctx context.Context, r *relay, method, path string, body, into any) (refused bool, err error) {
	token, err := os.ReadFile(filepath.Join(r.dir, "admin_token"))
	if err != nil {
		return true, err
	}
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return true, err
		}
		reader = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+r.console+path, reader)
	if err != nil {
		return true, err
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return false, err
	}
	if resp.StatusCode/100 != 2 {
		return resp.StatusCode/100 == 4, fmt.Errorf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if into != nil {
		if err := json.Unmarshal(text, &envelope); err != nil {
			return false, err
		}
		return false, json.Unmarshal(envelope.Data, into)
	}
	return false, nil
}

// fence is the tunnel whose policy is changed.
func (a *administrator) fence(made tunnel) {
	a.fenced = "fence"
	a.may["policy"] = []string{"none"}
	a.may["client scoped"] = []string{"absent"}
}

// begin changes things at random until settle.
func (a *administrator) begin(seed uint64) {
	ctx, end := context.WithCancel(context.Background())
	a.end = end
	random := rand.New(rand.NewPCG(seed, 3))
	a.wg.Go(func() {
		for ctx.Err() == nil {
			a.change(ctx, random)
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(random.IntN(300)) * time.Millisecond):
			}
		}
	})
}

// did counts what was done, by how it was answered.
func (a *administrator) did() map[string]int { return a.done }

// change makes one change at one node. A thing whose state is not certain is left
// alone until settle has seen what it is.
func (a *administrator) change(ctx context.Context, random *rand.Rand) {
	r := a.nodes[random.IntN(len(a.nodes))]
	var key, now, method, path string
	var body, into any
	var token struct {
		AuthToken string `json:"auth_token"`
		Token     struct {
			Hint string `json:"hint"`
		} `json:"token"`
	}
	switch kind := random.IntN(3); kind {
	case 0: // a policy
		deny := fmt.Sprintf("192.0.2.%d", random.IntN(250))
		key, now, method, path, body = "policy", "deny "+deny, "PUT", "/api/v1/policies/"+a.fenced, map[string]any{"deny": []string{deny}}
		if random.IntN(2) == 0 {
			now, body = "deny "+deny+" 127.0.0.1", map[string]any{"deny": []string{deny, "127.0.0.1"}}
		}
		if random.IntN(6) == 0 {
			if slices.Equal(a.may["policy"], []string{"none"}) {
				return
			}
			now, method, body = "none", "DELETE", nil
		}
	default:
		if a.next++; len(a.may) < 12 {
			key = fmt.Sprintf("client c%d", a.next)
			a.may[key] = []string{"absent"}
		} else {
			keys := []string{}
			for k := range a.may {
				if k != "policy" {
					keys = append(keys, k)
				}
			}
			slices.Sort(keys)
			key = keys[random.IntN(len(keys))]
		}
		name := strings.TrimPrefix(key, "client ")
		if len(a.may[key]) > 1 {
			return
		}
		switch state := a.may[key][0]; {
		case state == "absent" || state == "revoked":
			now, method, path, body, into = "active 0", "POST", "/api/v1/clients", map[string]any{"name": name}, &token
		case random.IntN(3) == 0:
			now, method, path = "revoked", "POST", "/api/v1/clients/"+name+"/revoke"
		case random.IntN(2) == 0: // its names are fenced
			n := 1 + random.IntN(1000)
			now, method, path, body = fmt.Sprintf("active %d", n), "PATCH", "/api/v1/clients/"+name,
				map[string]any{"scope": map[string]any{"tunnels": n, "domains": []string{"shop-*"}}}
		default:
			now, method, path, into = state, "POST", "/api/v1/clients/"+name+"/rotate", &token
		}
	}
	if len(a.may[key]) > 1 {
		return
	}
	refused, err := a.ask(context.WithoutCancel(ctx), r, method, path, body, into)
	switch {
	case err == nil:
		a.may[key] = []string{now}
		a.done["done"]++
	case refused:
		a.done["refused"]++
		a.t.Logf("refused: %s of %s: %v", now, key, err)
		a.may[key] = append(a.may[key], now) // its view may be behind; settle sees
	default:
		a.done["no answer"]++
		a.t.Logf("no answer: %s of %s: %v", now, key, err)
		a.may[key] = append(a.may[key], now)
		a.unsure[key] = func() (bool, error) { return a.ask(context.Background(), r, method, path, body, into) }
	}
}

// settle ends the changes, and waits until all nodes agree on what there is: it
// must be what the administrator was told, or what it tried. A change without an
// answer is made again first, as the relay asks for: else it may be made by what
// is still under way, after all have agreed on what was there without it.
func (a *administrator) settle(after string) {
	t := a.t
	t.Helper()
	a.end()
	a.wg.Wait()
	for key, again := range a.unsure {
		await(t, after+": the change of "+key+" is made again", func() error {
			refused, err := again()
			if refused { // it was made
				return nil
			}
			return err
		})
		delete(a.unsure, key)
	}
	keys := []string{}
	for key := range a.may {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	await(t, after+": all nodes have what is configured", func() error {
		views := make([]map[string]string, len(a.nodes))
		for i, r := range a.nodes {
			have, err := a.view(r)
			if err != nil {
				return err
			}
			views[i] = have
		}
		seen := views[0]
		for _, key := range keys {
			states := []string{}
			for _, have := range views {
				states = append(states, have[key])
			}
			if len(slices.Compact(slices.Clone(states))) > 1 || !slices.Contains(a.may[key], seen[key]) {
				return fmt.Errorf("%s is %q at the nodes, want one of %q at all", key, states, a.may[key])
			}
		}
		for key, state := range seen {
			if slices.Contains(keys, key) {
				a.may[key] = []string{state}
			}
		}
		return nil
	})
	closed := strings.HasSuffix(a.may["policy"][0], " 127.0.0.1")
	for i, r := range a.nodes {
		await(t, after+": the policy holds", func() error {
			status, err := a.visitFence(r)
			if err == nil && closed != (status == http.StatusForbidden) {
				err = fmt.Errorf("node %d answers with status %d, the policy is %q", i, status, a.may["policy"])
			}
			return err
		})
	}
}

func (a *administrator) visitFence(r *relay) (int, error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+r.http+"/", nil)
	if err != nil {
		return 0, err
	}
	req.Host = a.fenced + ".localhost"
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	io.Copy(io.Discard, resp.Body)
	if resp.StatusCode != http.StatusForbidden && resp.StatusCode != http.StatusOK {
		return 0, badStatus(resp.StatusCode)
	}
	return resp.StatusCode, nil
}

// view is what a node says is configured.
func (a *administrator) view(r *relay) (map[string]string, error) {
	var clients struct {
		Items []struct {
			Name, State string
			Scope       struct{ Tunnels int }
		}
	}
	var policies struct {
		Items []struct {
			Target string
			Policy struct{ Deny []string }
		}
	}
	have := map[string]string{}
	for key := range a.may {
		have[key] = "absent"
	}
	if _, err := a.ask(context.Background(), r, "GET", "/api/v1/clients", nil, &clients); err != nil {
		return nil, err
	}
	for _, c := range clients.Items {
		state := c.State
		if state == "active" {
			state = fmt.Sprintf("active %d", c.Scope.Tunnels)
		}
		have["client "+c.Name] = state
	}
	if _, err := a.ask(context.Background(), r, "GET", "/api/v1/policies", nil, &policies); err != nil {
		return nil, err
	}
	have["policy"] = "none"
	for _, p := range policies.Items {
		if strings.Contains(p.Target, a.fenced) {
			have["policy"] = "deny " + strings.Join(p.Policy.Deny, " ")
		}
	}
	return have, nil
}

// add adds a client at a node, and returns its token.
func (a *administrator) add(node int, name string) string {
	a.t.Helper()
	var added struct {
		AuthToken string `json:"auth_token"`
	}
	await(a.t, "a client is added", func() error {
		_, err := a.ask(context.Background(), a.nodes[node], "POST", "/api/v1/clients", map[string]any{"name": name}, &added)
		return err
	})
	return added.AuthToken
}

func (a *administrator) revoke(node int, name string) {
	a.t.Helper()
	await(a.t, "a client is revoked", func() error {
		_, err := a.ask(context.Background(), a.nodes[node], "POST", "/api/v1/clients/"+name+"/revoke", nil, nil)
		return err
	})
}

// reaches returns an error unless a node reaches all.
func (a *administrator) reaches(r *relay, all int) error {
	var list struct {
		Items []struct{ Reachable, Draining bool }
	}
	if _, err := a.ask(context.Background(), r, "GET", "/api/v1/nodes", nil, &list); err != nil {
		return err
	}
	n := 0
	for _, v := range list.Items {
		if v.Reachable && !v.Draining {
			n++
		}
	}
	if n != all || len(list.Items) != all {
		return fmt.Errorf("%d of %d nodes are reached", n, len(list.Items))
	}
	return nil
}

// twoSessionsEach returns a condition: the owners' agents have two sessions.
func (a *administrator) twoSessionsEach(agents []*agent) func() error {
	return func() error {
		seen := map[string][]string{}
		for node, r := range a.nodes {
			var list struct {
				Items []struct {
					Client, Address, Transport, Since string
					Tunnels                           int `json:"tunnel_count"`
				}
			}
			if _, err := a.ask(context.Background(), r, "GET", "/api/v1/sessions", nil, &list); err != nil {
				return err
			}
			for _, s := range list.Items {
				seen[s.Client] = append(seen[s.Client], fmt.Sprintf("at node %d over %s from %s with %d tunnels since %s", node, s.Transport, s.Address, s.Tunnels, s.Since))
			}
		}
		for i := range agents {
			if client := fmt.Sprintf("owner%d", i); len(seen[client]) != 2 {
				return fmt.Errorf("sessions of %s: %q", client, seen[client])
			}
		}
		return nil
	}
}
