package relay

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// running returns the keys of a client's tunnels that run at any node.
func (r *testRelay) running(clientID string) []string {
	var keys []string
	for _, s := range r.roster.All() {
		s.mu.Lock()
		for key := range s.tunnels {
			if s.client.ID == clientID {
				keys = append(keys, key)
			}
		}
		s.mu.Unlock()
	}
	slices.Sort(keys)
	return keys
}

// refitted makes all sessions of some nodes apply a scope once more, at the same time.
func refitted(scope scope.Scope, nodes ...*testRelay) {
	var all sync.WaitGroup
	for _, r := range nodes {
		for _, s := range r.roster.All() {
			all.Go(func() { s.refit(scope) })
		}
	}
	all.Wait()
}

// TestLoweredLimitStopsNoMoreThanItMust uses several agents of one client, each with a
// session that takes tunnels down independently.
func TestLoweredLimitStopsNoMoreThanItMust(t *testing.T) {
	const agents, each, limit = 6, 2, 5
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.scoped(t, "shop", scope.Scope{})
	client, _ := r.store.Clients.Get("shop")
	var keys []string
	for i := range agents {
		a := connect(t, token, fmt.Sprintf("i%d", i))
		for k := range each {
			key := fmt.Sprintf("k%d%d", i, k)
			a.mustClaim(key, wire.Claim{Type: wire.TypeHTTP, Domain: key}, "")
			keys = append(keys, key)
		}
	}
	scope := scope.Scope{Tunnels: limit}
	r.rescope(t, "shop", scope)
	eventually(t, "the limit is held", func() bool { return len(r.running(client.ID)) <= limit })
	refitted(scope, r)
	if got := r.running(client.ID); !slices.Equal(got, keys[:limit]) {
		t.Errorf("%q run, want %q", got, keys[:limit])
	}
}

// TestLoweredLimitIsTheSameOnAllNodes uses an agent with a session at two nodes, each of
// which has all of its tunnels, and another agent at one of the nodes.
func TestLoweredLimitIsTheSameOnAllNodes(t *testing.T) {
	c := startNodes(t, 2)
	c.awaitWhole(c.all...)
	token := c.clientEverywhere("shop")
	client, _ := c.all[0].store.Clients.Get("shop")
	first, second := connect(t, c.all[0].at(token), "i1"), connect(t, c.all[1].at(token), "i1")
	for _, key := range []string{"a", "b", "c"} {
		claim := wire.Claim{Type: wire.TypeHTTP, Domain: key}
		first.mustClaim(key, claim, "")
		second.mustClaim(key, claim, "")
	}
	other := connect(t, c.all[1].at(token), "i2")
	other.mustClaim("d", wire.Claim{Type: wire.TypeHTTP, Domain: "d"}, "")
	for _, r := range c.all {
		eventually(t, "each node knows all", func() bool { return len(r.tunnelsOf(client.ID)) == 4 })
	}
	scope := scope.Scope{Tunnels: 2}
	c.all[0].rescope(t, "shop", scope)
	for _, r := range c.all {
		eventually(t, "the limit is held", func() bool { return len(r.tunnelsOf(client.ID)) <= 2 })
	}
	refitted(scope, c.all...)
	for i, r := range c.all {
		if got, want := r.running(client.ID), []string{"a", "b"}; !slices.Equal(got, want) {
			t.Errorf("at node %d %q run, want %q", i, got, want)
		}
	}
}

// TestLimitOfTunnelsHoldsForAgentsThatComeAtOnce covers agents that come together after
// the relay was restarted, or because a client wants more than it may have.
func TestLimitOfTunnelsHoldsForAgentsThatComeAtOnce(t *testing.T) {
	const agents, limit = 12, 3
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.scoped(t, "shop", scope.Scope{Tunnels: limit})
	client, _ := r.store.Clients.Get("shop")
	come := make([]*fakeAgent, agents)
	for i := range come {
		come[i] = connect(t, token, fmt.Sprintf("i%d", i))
	}
	refused := make([]error, agents)
	var all sync.WaitGroup
	for i, a := range come {
		all.Go(func() {
			_, refused[i] = a.claim("k", wire.Claim{Type: wire.TypeHTTP, Domain: fmt.Sprintf("k%d", i)}, "")
		})
	}
	all.Wait()
	if got := r.running(client.ID); len(got) != limit {
		t.Errorf("%d tunnels run, want %d", len(got), limit)
	}
	for _, err := range refused {
		if err != nil {
			problem(t, err, wire.CodeLimit)
		}
	}
}

// TestLimitOfTunnelsHoldsForAgentsThatComeToTwoNodesAtOnce makes each node count the
// tunnels of its own agent before it hears of the other's.
func TestLimitOfTunnelsHoldsForAgentsThatComeToTwoNodesAtOnce(t *testing.T) {
	c := startNodes(t, 2)
	c.awaitWhole(c.all...)
	token := c.clientEverywhere("shop")
	client, _ := c.all[0].store.Clients.Get("shop")
	limited := scope.Scope{Tunnels: 3}
	c.all[0].rescope(t, "shop", limited)
	agents := make([]*fakeAgent, len(c.all))
	for i, r := range c.all {
		agents[i] = connect(t, r.at(token), fmt.Sprint("i", i))
		eventually(t, "the limit is known", func() bool { v, _ := r.store.Clients.Get("shop"); return v.Scope.Tunnels == 3 })
		for k := range 2 {
			key := fmt.Sprintf("k%d%d", i, k)
			if i == 0 {
				agents[i].mustClaim(key, wire.Claim{Type: wire.TypeHTTP, Domain: key}, "")
			} else {
				uncounted(t, r.roster.All()[0], key)
			}
		}
	}
	for _, r := range c.all {
		eventually(t, "each node knows all", func() bool {
			return len(r.tunnelsOf(client.ID)) == 4 && r.store.Claims.CountOfClient(client.ID) == 4
		})
	}
	for range 2 {
		var both sync.WaitGroup
		for _, r := range c.all {
			both.Go(r.boundClients)
		}
		both.Wait()
	}
	if e := agents[1].event(wire.EventClaimLost); e.Key != "k11" || !strings.Contains(e.Reason, "to 3") {
		t.Errorf("the last to come was told %+v", e)
	}
	for i, want := range [][]string{{"k00", "k01"}, {"k10"}} {
		if got := c.all[i].running(client.ID); !slices.Equal(got, want) {
			t.Errorf("at node %d %q run, want %q", i, got, want)
		}
	}
}

// uncounted runs a tunnel of a session that was let in before the others were known.
func uncounted(t *testing.T, s *session, key string) {
	t.Helper()
	s.claiming.Lock()
	defer s.claiming.Unlock()
	name := key + ".relay.test"
	claim := wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: key}
	face := routing.Face{Slot: claims.SlotPlain, Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: name, Target: claims.TargetDomain(name)}
	v, err := s.open(t.Context(), placing{key: key, claim: claim, scope: s.scope()}, face)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.tunnels[key] = v
	s.mu.Unlock()
	s.relay.serving.add(face.Target, s, key)
	s.relay.mesh.TunnelUp(nodes.Tunnel{
		Session: s.id, Key: key, Number: v.backend.Number, Claim: claim, Target: face.Target, Slot: face.Slot, Domain: face.Domain,
	})
}
