package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// guarded is a tunnel that brings a password and moves from name to name, while
// strangers try the names that it has, had, and is about to get at every node.
// None of them is ever let in.
type guarded struct {
	c     *nodesChaos
	agent *agent
	made  tunnel

	mu    sync.Mutex
	names []string // the newest last

	end                  context.CancelFunc
	moving               sync.WaitGroup
	moved, unmoved       int
	knocks, refused, let atomic.Int64
}

// guardedPath gives a stranger who is let in a body, and status 200.
const guardedPath = "/file?size=10"

const guardedPassword = "an open sesame of chaos"

// guard has an agent publish the tunnel, by the leave of the administrator, and
// strangers knock from before its first moment on.
func (c *nodesChaos) guard(owner, port int) {
	c.t.Helper()
	g := &guarded{c: c, agent: c.agents[owner]}
	leave := map[string]any{"scope": map[string]any{"own_policies": true}}
	if _, err := c.admin.ask(context.Background(), c.nodes[0], "PATCH", fmt.Sprintf("/api/v1/clients/owner%d", owner), leave, nil); err != nil {
		c.t.Fatal(err)
	}
	name := g.nextName()
	for node := range c.nodes {
		c.wg.Go(func() { g.knock(node) })
	}
	body := map[string]any{
		"type": "http", "mode": "standard", "local_port": port, "domain": name,
		"policy": map[string]any{"basic_auth": []map[string]string{{"name": "ann", "password": guardedPassword}}},
	}
	await(c.t, "the guarded tunnel is made", func() error {
		got := g.agent.call("POST", "/api/v1/tunnels", body)
		if got.Status != http.StatusCreated { // the leave is not known at every node at once
			return errors.New(got.Raw)
		}
		decode(c.t, string(got.Data), &g.made)
		return nil
	})
	c.guarded = g
	g.holds("the beginning")
}

// nextName is a name that nobody had, which strangers knock at from now on.
func (g *guarded) nextName() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := fmt.Sprintf("guarded%d-%d", len(g.names), rand.IntN(1<<30))
	g.names = append(g.names, name)
	return name
}

// tried are the names that strangers try: what the tunnel has is among them.
func (g *guarded) tried() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names[max(0, len(g.names)-4):])
}

// knock tries the names at one node until the end.
func (g *guarded) knock(node int) {
	for {
		for _, name := range g.tried() {
			select {
			case <-g.c.end:
				return
			case <-time.After(20 * time.Millisecond):
			}
			g.knockOnce(node, name)
		}
	}
}

// rush tries a name that the tunnel is about to get, at one node and without a pause,
// until it is asked for the password; at most for some seconds.
func (g *guarded) rush(node int, name string) {
	for begin := time.Now(); time.Since(begin) < 5*time.Second; {
		status, err := g.knockOnce(node, name)
		if status == http.StatusUnauthorized || status == http.StatusOK {
			return
		}
		if err != nil {
			<-time.After(20 * time.Millisecond) // a fault is on: do not spin
		}
	}
}

func (g *guarded) knockOnce(node int, name string) (status int, err error) {
	status, err = g.visit(node, name, "")
	if err != nil {
		return 0, err
	}
	g.knocks.Add(1)
	switch status {
	case http.StatusUnauthorized:
		g.refused.Add(1)
	case http.StatusOK:
		g.let.Add(1)
		g.c.t.Errorf("node %d let a stranger in to %s at %s", node, name, time.Now().UTC().Format("15:04:05.000"))
	}
	return status, nil
}

func (g *guarded) visit(node int, name, password string) (status int, err error) {
	req, err := http.NewRequest(http.MethodGet, "http://"+g.c.nodes[node].http+guardedPath, nil)
	if err != nil {
		return 0, err
	}
	req.Host = name + ".localhost"
	if password != "" {
		req.SetBasicAuth("ann", password)
	}
	resp, err := g.c.visitor.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// begin moves the tunnel to new names until settle.
func (g *guarded) begin(seed uint64) {
	ctx, end := context.WithCancel(context.Background())
	g.end = end
	random := rand.New(rand.NewPCG(seed, 7))
	g.moving.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Duration(500+random.IntN(2500)) * time.Millisecond):
			}
			name := g.nextName()
			for node := range g.c.nodes {
				g.moving.Go(func() { g.rush(node, name) })
			}
			got, err := g.agent.tryCall("PATCH", "/api/v1/tunnels/"+g.made.ID, map[string]any{"domain": name})
			if err != nil || got.Status != http.StatusOK {
				g.unmoved++
				g.c.t.Logf("the guarded tunnel was not moved: %v %s", err, got.Raw)
				continue
			}
			g.moved++
		}
	})
}

// settle ends the moves. The tunnel answers at the name that it has, at all nodes,
// to whom knows the password alone, and at none of the others.
func (g *guarded) settle(after string) {
	g.c.t.Helper()
	g.end()
	g.moving.Wait()
	g.holds(after)
}

func (g *guarded) holds(after string) {
	t := g.c.t
	t.Helper()
	for node := range g.c.nodes {
		await(t, fmt.Sprintf("%s: node %d serves the guarded tunnel", after, node), func() error {
			now := g.agent.awaitTunnel(g.made.ID, "running").Domain
			for _, name := range g.tried() {
				want := http.StatusNotFound
				if name == now {
					want = http.StatusOK
				}
				if status, err := g.visit(node, name, guardedPassword); err != nil || status != want {
					return fmt.Errorf("%s, of a tunnel at %s: status %d, %v", name, now, status, err)
				}
			}
			return nil
		})
	}
}

func (g *guarded) did(t *testing.T) {
	t.Logf("the guarded tunnel was moved %d times and %d times not; strangers were answered %d times, %d of them by a question for the password, and let in %d times",
		g.moved, g.unmoved, g.knocks.Load(), g.refused.Load(), g.let.Load())
	if g.refused.Load() == 0 {
		t.Error("no stranger came to the guarded tunnel")
	}
}
