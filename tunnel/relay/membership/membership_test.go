package membership

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// cluster is a store and a mesh in memory.
type cluster struct {
	mu       sync.Mutex
	entries  map[string]store.Node
	peers    map[string]nodes.PeerState
	changed  func()
	away     bool
	draining bool
	told     int
	doubles  []store.Node

	saysAway bool         // node a told the others
	log      bytes.Buffer // of node a
}

func (c *cluster) Renew(_ context.Context, v store.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away {
		return errors.New("the store is away")
	}
	c.entries[v.ID] = v
	return nil
}

func (c *cluster) Leave(_ context.Context, id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, id)
	return nil
}

func (c *cluster) List() []store.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []store.Node
	for _, v := range c.entries {
		list = append(list, v)
	}
	return list
}

func (c *cluster) OnChange(f func()) { c.changed = f }
func (c *cluster) Know([]nodes.Node) {}

func (c *cluster) StoreAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saysAway = away
}

func (c *cluster) Peers() map[string]nodes.PeerState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.peers)
}

// set changes a node: its entry, if it is listed, and how it answers.
func (c *cluster) set(id string, listed bool, p nodes.PeerState) {
	c.mu.Lock()
	if listed {
		c.entries[id] = store.Node{ID: id, AgentAddress: id + ":4433", Sessions: 1}
	} else {
		delete(c.entries, id)
	}
	c.peers[id] = p
	c.mu.Unlock()
	c.changed()
	synctest.Wait()
}

func (c *cluster) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told
}

// start runs the members of node a until the test ends.
func start(t *testing.T) (*cluster, *Members, func()) {
	t.Helper()
	c := &cluster{entries: make(map[string]store.Node), peers: make(map[string]nodes.PeerState)}
	self := store.Node{ID: "a", Boot: "first", AgentAddress: "a:4433"}
	lock := func(f func()) {
		c.mu.Lock()
		defer c.mu.Unlock()
		f()
	}
	m := New(Config{
		Node: self, Self: func() store.Node { return self },
		Draining: func() (is bool) { lock(func() { is = c.draining }); return is },
		Store:    c, Connected: func() (is bool) { lock(func() { is = !c.away }); return is },
		Mesh: c, Changed: func() { lock(func() { c.told++ }) },
		Double: func(n store.Node) { lock(func() { c.doubles = append(c.doubles, n) }) }, Log: slog.New(slog.NewTextHandler(&c.log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { m.Run(ctx); close(done) }()
	synctest.Wait()
	end := func() { cancel(); <-done }
	t.Cleanup(end)
	return c, m, end
}

func ids(list []wire.Node) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.ID)
	}
	slices.Sort(out)
	return out
}

func TestAgentsAreToldOfNodesThatAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := start(t)
		there := nodes.PeerState{Connected: true}
		for _, step := range []struct {
			what   string
			listed bool
			state  nodes.PeerState
			want   []string
			told   int
		}{
			{"listed, and silent", true, nodes.PeerState{}, nil, 0},
			{"answers", true, there, []string{"a", "b"}, 1},
			{"the same again", true, there, []string{"a", "b"}, 1},
			{"lease lost, and answers", false, there, []string{"a", "b"}, 1},
			{"ends", true, nodes.PeerState{Connected: true, Draining: true}, nil, 2},
			{"gone", false, nodes.PeerState{}, nil, 2},
		} {
			c.set("b", step.listed, step.state)
			if got := ids(m.ForAgent()); !slices.Equal(got, step.want) || c.count() != step.told {
				t.Errorf("%s: agents try %q, told %d times; want %q, %d", step.what, got, c.count(), step.want, step.told)
			}
		}
		c.set("b", true, there)
		c.mu.Lock()
		c.draining = true
		c.mu.Unlock()
		if got := ids(m.ForAgent()); !slices.Equal(got, []string{"b"}) {
			t.Errorf("of a node that ends agents try %q", got)
		}
	})
}

// TestLeaseThatIsNotRenewedIsToldOnce also checks that the recovery is logged.
func TestLeaseThatIsNotRenewedIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, end := start(t)
		for _, away := range []bool{true, false} {
			c.mu.Lock()
			c.away = away
			c.mu.Unlock()
			time.Sleep(5 * renewEvery)
		}
		end()
		log := c.log.String()
		if lost, back := strings.Count(log, "lease is not renewed"), strings.Count(log, "lease is renewed again"); lost != 1 || back != 1 {
			t.Errorf("told %d times that it is not, and %d that it is again:\n%s", lost, back, log)
		}
	})
}

func TestNodeThatIsCutOffIsNotSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m, end := start(t)
		time.Sleep(time.Minute)
		if !m.Sure() || !m.Whole() {
			t.Error("a node with its store is not sure")
		}
		c.mu.Lock()
		c.away = true
		c.mu.Unlock()
		if m.Sure() || m.Whole() {
			t.Error("a node whose store is away is sure")
		}
		time.Sleep(sureTime)
		c.mu.Lock()
		c.away = false // it is reached, and has not yet taken the node's entry
		c.mu.Unlock()
		if m.Sure() {
			t.Error("a node that was away for long is sure before its entry is taken")
		}
		time.Sleep(renewEvery)
		synctest.Wait()
		if !m.Sure() {
			t.Error("a node whose entry is taken again is not sure")
		}
		if end(); len(c.List()) != 0 {
			t.Errorf("a node that has ended is listed: %+v", c.List())
		}
	})
}

// TestNodeIsCutOffWhereOthersAreNot also checks that it is not when nobody reaches the
// store.
func TestNodeIsCutOffWhereOthersAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := start(t)
		expect := func(when string, away, cutOff bool) {
			t.Helper()
			time.Sleep(awayEvery)
			synctest.Wait()
			c.mu.Lock()
			said := c.saysAway
			c.mu.Unlock()
			if said != away || m.CutOff() != cutOff {
				t.Errorf("%s: told away: %t, cut off: %t; want %t and %t", when, said, m.CutOff(), away, cutOff)
			}
		}
		expect("alone with its store", false, false)
		c.mu.Lock()
		c.away = true
		c.mu.Unlock()
		expect("alone without", true, false)
		c.set("b", true, nodes.PeerState{})
		expect("beside one that does not answer", true, true)
		c.set("b", true, nodes.PeerState{Connected: true})
		expect("beside one that reaches the store", true, true)
		c.set("b", true, nodes.PeerState{Connected: true, StoreAway: true})
		expect("beside one that does not either", true, false)
		c.mu.Lock()
		c.away = false
		c.mu.Unlock()
		expect("with its store again", false, false)
	})
}

func TestMeetWaitsForNodesThatAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m, _ := start(t)
		c.set("b", true, nodes.PeerState{})
		begin := time.Now()
		m.Meet(t.Context())
		if waited := time.Since(begin); waited != meetTime {
			t.Errorf("a silent node was waited for %v, want %v", waited, meetTime)
		}
		c.set("b", true, nodes.PeerState{Connected: true})
		begin = time.Now()
		if m.Meet(t.Context()); time.Since(begin) != 0 {
			t.Errorf("a node that answers was waited for %v", time.Since(begin))
		}
	})
}

func TestAnotherRelayWithTheSameIDIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, _ := start(t)
		for range 3 {
			c.mu.Lock()
			c.entries["a"] = store.Node{ID: "a", Boot: "another"}
			c.mu.Unlock()
			c.changed()
			synctest.Wait()
			time.Sleep(renewEvery) // it tells of itself again
		}
		if len(c.doubles) != 1 || c.doubles[0].Boot != "another" {
			t.Errorf("told of %+v", c.doubles)
		}
	})
}
