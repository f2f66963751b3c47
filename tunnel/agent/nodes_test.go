package agent

import (
	"io"
	"slices"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/state"
	"adit/tunnel/wire"
)

// newFakeNodes are relays of one authority that tell of each other.
func newFakeNodes(t *testing.T, n int) []*fakeRelay {
	t.Helper()
	var all []*fakeRelay
	var list []wire.Node
	for i := range n {
		r := newFakeRelay(t)
		if i > 0 {
			r.kill()
			r.authority, r.addr = all[0].authority, "" // its port may be another's by now
			r.start()
		}
		r.set(func() { r.node = string(rune('a' + i)) })
		all = append(all, r)
		list = append(list, wire.Node{ID: string(rune('a' + i)), Address: r.addr})
	}
	for _, r := range all {
		r.set(func() { r.nodes = list })
	}
	return all
}

func (r *fakeRelay) serves(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.claims[key]
	return ok && !r.kept[key] && len(r.sessions) > 0
}

func (r *fakeRelay) connected() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.sessions, func(s *fakeSession) bool { return s.Err() == nil })
}

// TestANodeThatEndsEachSessionIsNotStormed: it takes the second session, and ends it
// at once.
func TestANodeThatEndsEachSessionIsNotStormed(t *testing.T) {
	const span, most = 3 * time.Second, 6 // with pauses of 0.2, 0.4, 0.8 and 1.6 s, give or take a half
	all := newFakeNodes(t, 2)
	all[1].set(func() { all[1].ends = true })
	configured(t, all[0], Config{})
	began := time.Now()
	eventually(t, "the end of the span", func() bool { return time.Since(began) > span })
	if came := all[1].tries(); came > most || came < 2 {
		t.Errorf("%d sessions in %v, want some and at most %d", came, span, most)
	}
}

// TestTwoNodesHaveSessions has the agent keep sessions with two nodes, claim its
// tunnels on both, go on with the second when the first is lost, and find
// another second.
func TestTwoNodesHaveSessions(t *testing.T) {
	all := newFakeNodes(t, 3)
	a, _ := configured(t, all[0], Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	var second *fakeRelay
	eventually(t, "another node has the tunnel", func() bool {
		for _, r := range all[1:] {
			if r.serves(tun.ID) {
				second = r
			}
		}
		return second != nil
	})
	var hello wire.Hello
	second.set(func() { hello = second.hellos[len(second.hellos)-1] })
	if hello.Beside != "a" {
		t.Errorf("the second hello: %+v", hello)
	}
	all[0].kill()
	eventually(t, "the second session is in use", func() bool { return a.Status().Relay == second.addr && a.Status().Connected })
	wantTunnel(t, a, tun.ID, TunnelRunning)
	third := all[1]
	if third == second {
		third = all[2]
	}
	eventually(t, "a third node has the tunnel", func() bool { return third.serves(tun.ID) })
	if _, err := a.StopTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*fakeRelay{second, third} {
		eventually(t, "no node serves a stopped tunnel", func() bool { return !r.serves(tun.ID) })
	}
	if _, err := a.StartTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*fakeRelay{second, third} {
		eventually(t, "both serve it again", func() bool { return r.serves(tun.ID) })
	}
	if _, err := a.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*fakeRelay{second, third} {
		eventually(t, "a pause ends both sessions", func() bool { return !r.connected() })
	}
}

// TestEachNewTunnelIsClaimedOnTheSecondSession makes many, each when the second
// session has the one before and nothing else to do: one that comes to look too
// early must look again.
func TestEachNewTunnelIsClaimedOnTheSecondSession(t *testing.T) {
	all := newFakeNodes(t, 2)
	a, _ := configured(t, all[0], Config{})
	for i := range 64 {
		tun := mustCreate(t, a, definition.Tunnel{LocalPort: 1024 + i})
		eventually(t, "the other node has the tunnel", func() bool { return all[1].serves(tun.ID) })
	}
}

// TestSessionThatWasLeftIsGivenNoMoreVisitors has the node in use ask to be
// relieved while a visitor stays: its session goes on for that one alone.
func TestSessionThatWasLeftIsGivenNoMoreVisitors(t *testing.T) {
	all := newFakeNodes(t, 2)
	port := service(t, echo)
	a, _ := configured(t, all[0], Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: wire.TypeTCP, LocalPort: port})
	eventually(t, "the other node has the tunnel", func() bool { return all[1].serves(tun.ID) })
	stays := all[0].mustVisit(tun.ID, wire.StreamRaw)
	left := all[0].session()
	left.events <- wire.Event{Type: wire.EventDrain, Nodes: []wire.Node{{ID: "b", Address: all[1].addr}}}
	eventually(t, "the second session is in use", func() bool { return a.Status().Relay == all[1].addr })
	eventually(t, "the node that was left serves the tunnel no longer", func() bool { return !all[0].serves(tun.ID) || left.Err() != nil })
	if !all[1].serves(tun.ID) {
		t.Error("nobody serves the tunnel")
	}
	echoed := make([]byte, 5)
	if _, err := stays.Write([]byte("still")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(stays, echoed); err != nil || string(echoed) != "still" {
		t.Fatalf("the visitor who was there got %q, %v", echoed, err)
	}
	stays.Close()
	eventually(t, "the session that was left ends", func() bool { return left.Err() != nil })
}

// TestTunnelDeletedWhileASessionIsLeftIsServedNowhere deletes a tunnel that a node
// still has which was left, and which a visitor of another tunnel keeps.
func TestTunnelDeletedWhileASessionIsLeftIsServedNowhere(t *testing.T) {
	for name, unable := range map[string]int{"the node takes it down": 0, "the node can only later": 3} {
		t.Run(name, func(t *testing.T) {
			all := newFakeNodes(t, 2)
			port := service(t, echo)
			a, _ := configured(t, all[0], Config{})
			stays := mustCreate(t, a, definition.Tunnel{Type: wire.TypeTCP, LocalPort: port})
			goes := mustCreate(t, a, definition.Tunnel{Type: wire.TypeTCP, LocalPort: port})
			eventually(t, "the other node has the tunnels", func() bool { return all[1].serves(stays.ID) && all[1].serves(goes.ID) })
			all[0].mustVisit(stays.ID, wire.StreamRaw)
			left := all[0].session()
			all[0].set(func() { all[0].unable = 1 << 30 }) // it takes nothing down before the deletion
			left.events <- wire.Event{Type: wire.EventDrain, Nodes: []wire.Node{{ID: "b", Address: all[1].addr}}}
			eventually(t, "the second session is in use", func() bool { return a.Status().Relay == all[1].addr })
			eventually(t, "the node that was left was asked", func() bool {
				all[0].mu.Lock()
				defer all[0].mu.Unlock()
				return all[0].unable < 1<<30-1
			})
			all[0].set(func() { all[0].unable = unable })
			if err := a.DeleteTunnel(t.Context(), goes.ID); err != nil {
				t.Fatal(err)
			}
			if visitor, err := all[0].visit(goes.ID, wire.StreamRaw); err == nil {
				visitor.Reset()
				t.Error("a visitor is served by a deleted tunnel")
			}
			eventually(t, "the node that was left serves the tunnel no longer", func() bool { return !all[0].serves(goes.ID) })
			if left.Err() != nil {
				t.Errorf("the session that was left has ended: %v", left.Err())
			}
		})
	}
}

// TestDrainMovesToTheSecondSession has the node in use ask to move on.
func TestDrainMovesToTheSecondSession(t *testing.T) {
	all := newFakeNodes(t, 2)
	a, _ := configured(t, all[0], Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	eventually(t, "the other node has the tunnel", func() bool { return all[1].serves(tun.ID) })
	all[0].set(func() {
		all[0].refuse = &wire.Problem{Code: wire.CodeUnavailable, Message: "the relay is shutting down"}
	})
	all[0].session().events <- wire.Event{Type: wire.EventDrain, Nodes: []wire.Node{{ID: "b", Address: all[1].addr}}}
	eventually(t, "the second session is in use", func() bool { return a.Status().Relay == all[1].addr && a.Status().Connected })
	wantTunnel(t, a, tun.ID, TunnelRunning)
	if err := a.DeleteTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
}

// TestRemembersNodes has the token's node be down when the agent starts.
func TestRemembersNodes(t *testing.T) {
	all := newFakeNodes(t, 2)
	dir := t.TempDir()
	for _, r := range all {
		r.set(func() { r.addresses = []string{all[0].addr, all[1].addr} })
	}
	a, stop := startAgent(t, Config{StateDir: dir})
	if _, err := a.Configure(t.Context(), all[0].token().Reveal(), ""); err != nil {
		t.Fatal(err)
	}
	wantState(t, a, StateConnected)
	stop()
	all[0].kill()
	a, stop = startAgent(t, Config{StateDir: dir})
	wantState(t, a, StateConnected)
	if s := a.Status(); s.Relay != all[1].addr {
		t.Errorf("connected with %s", s.Relay)
	}
	stop()

	// Addresses are of the authority that told them: another relay's token in
	// the environment finds none of them.
	other := newFakeRelay(t)
	folder, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := folder.Load()
	if err != nil {
		t.Fatal(err)
	}
	saved.Auth.Token = ""
	if err := folder.SaveAuth(saved.Auth); err != nil {
		t.Fatal(err)
	}
	folder.Close()
	a, stop = startAgent(t, Config{StateDir: dir, AuthToken: other.token().Reveal()})
	wantState(t, a, StateConnected)
	a.mu.Lock()
	kept := a.login.auth.Addresses
	a.mu.Unlock()
	if len(kept) != 0 {
		t.Errorf("it kept %v", kept)
	}
	stop()
}
