package far

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/table"
	"adit/tunnel/wire"
)

// place is a node with an edge, claims and a roster in memory. It notes what happens.
type place struct {
	*Agents
	mu       sync.Mutex
	claims   map[string]claims.Claim
	busy     bool   // ports are
	policies uint64 // revision up to which they are known
	draining map[string]bool
	happened []string
}

func newPlace() *place {
	p := &place{claims: make(map[string]claims.Claim), draining: make(map[string]bool)}
	p.Agents = New(Config{
		Edge: p, Claims: p, Roster: p, Account: func(string) *shape.Account { return nil },
		Draining: func(node string) bool { return p.draining[node] }, Changed: func() { p.note("changed") },
		Came:     func(a roster.Agent, beside string) { p.note("%s is beside %q", a.Instance, beside) },
		Policies: p, Learn: func(target string, rev uint64) { p.note("learn %s %d", target, rev) },
		Told: func(table.Change) { p.note("told") }, Log: slog.New(slog.DiscardHandler),
	})
	return p
}

func (p *place) Knows(_, _ string, rev uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.policies >= rev
}

func (p *place) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.happened = append(p.happened, fmt.Sprintf(format, args...))
}

// since returns what happened since the last call.
func (p *place) since() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := strings.Join(p.happened, ", ")
	p.happened = nil
	return out
}

func (p *place) Attach(f routing.Face, b *routing.Backend) (*routing.Endpoint, error) {
	p.mu.Lock()
	busy := p.busy
	p.mu.Unlock()
	if busy {
		return nil, errors.New("the port is in use")
	}
	p.note("attach %s #%d", f.Domain, b.Number)
	return nil, nil
}

func (p *place) Detach(f routing.Face, b *routing.Backend) {
	p.note("detach %s #%d", f.Domain, b.Number)
}

func (p *place) Lose(f routing.Face, b *routing.Backend) {
	p.note("lose %s #%d", f.Domain, b.Number)
}

func (p *place) Reorder(faces ...routing.Face) {
	for _, f := range faces {
		p.note("reorder %s", f.Domain)
	}
}

func (p *place) Get(target string) (claims.Claim, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.claims[target]
	return c, ok
}

func (p *place) Came(a roster.Agent)              { p.note("came %s", a.Instance) }
func (p *place) Left(a roster.Agent, _ time.Time) { p.note("left %s", a.Instance) }

// claim has the name shop be a client's, by a tunnel k of an instance.
func (p *place) claim(client, instance string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims["t"] = claims.Claim{ClientID: client, Holders: []claims.Holder{{
		Slot: claims.SlotPlain, Instance: instance, Key: "k", Type: wire.TypeHTTP, Mode: wire.ModeStandard,
	}}}
}

func session(node, instance string) *nodes.Session {
	return &nodes.Session{Agent: nodes.Agent{Session: node + instance, ClientID: "c", Instance: instance}, Node: node}
}

func shop(number uint32) nodes.Tunnel {
	return nodes.Tunnel{Key: "k", Number: number, Target: "t", Slot: claims.SlotPlain, Domain: "shop", Claim: wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard}}
}

func TestTunnelsAreServedAsClaimsSay(t *testing.T) {
	p, s := newPlace(), session("b", "i1")
	step := func(what, want string, f func()) {
		t.Helper()
		f()
		if got := p.since(); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	s.Beside = "a"
	step("an agent comes", `came i1, i1 is beside "a"`, func() { p.SessionUp(s) })
	step("a tunnel ahead of its claim", "", func() { p.TunnelUp(s, shop(1)) })
	step("its claim", "attach shop #1", func() { p.claim("c", "i1"); p.Review("t") })
	step("the same again", "", func() { p.TunnelUp(s, shop(1)) })
	// A visitor always finds one of the two.
	step("another number", "attach shop #2, detach shop #1", func() { p.TunnelUp(s, shop(2)) })
	step("the claim is another agent's", "detach shop #2", func() { p.claim("c", "i2"); p.Review("t") })
	step("and this one's again", "attach shop #2", func() { p.claim("c", "i1"); p.Review("t") })
	step("another client's", "detach shop #2", func() { p.claim("d", "i1"); p.Review("t") })
	step("back", "attach shop #2", func() { p.claim("c", "i1"); p.Review("t") })
	step("the tunnel ends", "detach shop #2", func() { p.TunnelDown(s, "k") })
	step("and comes anew", "attach shop #3", func() { p.TunnelUp(s, shop(3)) })
	step("the agent goes", "lose shop #3, left i1", func() { p.SessionDown(s) })
	step("what a session that is gone tells", "", func() { p.TunnelUp(s, shop(4)); p.TunnelDown(s, "k"); p.SessionDown(s) })
}

// TestAgentsThatWereThereBeforeHaveNotComeNow has a node be reached again: its agents have
// the sessions that they had, and those that they have here are not in doubt for that.
func TestAgentsThatWereThereBeforeHaveNotComeNow(t *testing.T) {
	p, s := newPlace(), session("b", "i1")
	s.Before = true
	p.SessionUp(s)
	if got := p.since(); got != "came i1" {
		t.Errorf("got %q", got)
	}
}

// TestTunnelsWaitForTheirPolicies: a policy that a third node has set may be known here
// later than the tunnel.
func TestTunnelsWaitForTheirPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := newPlace(), session("b", "i1")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p.claim("c", "i1")
		p.SessionUp(s)
		p.since()
		guarded := shop(1)
		guarded.PolicyRevision = 7
		if p.TunnelUp(s, guarded); p.since() != "learn t 7" {
			t.Error("a tunnel is served whose policy is not known yet, or nobody learns of that")
		}
		p.policies = 6
		if p.Review("t"); p.since() != "learn t 7" {
			t.Error("a tunnel is served whose policy is not known yet")
		}
		go p.Run(ctx)
		time.Sleep(retryEvery + time.Millisecond)
		if got := p.since(); got != "learn t 7" {
			t.Errorf("it is not tried again: %q", got)
		}
		p.mu.Lock()
		p.policies = 7
		p.mu.Unlock()
		if p.Review("t"); p.since() != "attach shop #1" {
			t.Error("a tunnel is not served whose policy is known")
		}
		time.Sleep(2 * retryEvery)
		if got := p.since(); got != "" {
			t.Errorf("after that: %s", got)
		}
	})
}

func TestClaimsThatThisNodeCouldNotServeAreLeft(t *testing.T) {
	p, s := newPlace(), session("b", "i1")
	p.claim("c", "i1")
	p.SessionUp(s)
	p.since()
	odd := shop(1)
	odd.Claim.Paths = []wire.ClaimPath{{Path: "no slash"}}
	if p.TunnelUp(s, odd); p.since() != "" {
		t.Error("a claim of another version is served, which this node cannot lead")
	}
}

func TestPortsThatAreTakenAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s := newPlace(), session("b", "i1")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go p.Run(ctx)
		p.claim("c", "i1")
		p.busy = true
		p.SessionUp(s)
		p.TunnelUp(s, shop(1))
		time.Sleep(2 * retryEvery)
		if got := p.since(); got != `came i1, i1 is beside ""` {
			t.Errorf("while the port is taken: %s", got)
		}
		p.mu.Lock()
		p.busy = false
		p.mu.Unlock()
		time.Sleep(retryEvery)
		synctest.Wait()
		if got := p.since(); got != "attach shop #1" {
			t.Errorf("when it is free: %q", got)
		}
		time.Sleep(2 * retryEvery)
		if got := p.since(); got != "" {
			t.Errorf("after that: %s", got)
		}
	})
}

func TestNodesThatEndAreLeft(t *testing.T) {
	p := newPlace()
	p.claim("c", "i1")
	stays, ends := session("b", "i1"), session("d", "i1")
	for _, s := range []*nodes.Session{stays, ends} {
		p.SessionUp(s)
		p.TunnelUp(s, shop(1))
	}
	agent := roster.Agent{Client: "c", Instance: "i1"}
	if !p.Has("c") || p.Has("d") || !p.Connected(agent) || !p.Serves(agent, "k") || p.Serves(agent, "other") || p.Connected(roster.Agent{Client: "c", Instance: "i2"}) {
		t.Error("what is served is not told from what is not")
	}
	p.since()
	p.draining["d"] = true
	for _, want := range []string{"reorder shop, changed", "changed"} {
		if p.NodeChanged("d"); p.since() != want {
			t.Errorf("node d ends: want %q", want)
		}
	}
	if p.SessionDown(stays); p.Serves(agent, "k") || !p.Has("c") {
		t.Error("a node that ends is taken for one that stays")
	}
	if p.SessionDown(ends); p.Connected(agent) || p.Has("c") || !strings.HasSuffix(p.since(), "left i1") {
		t.Error("an agent without sessions counts as connected")
	}
}

func TestWhatThereIsElsewhere(t *testing.T) {
	p := newPlace()
	for _, s := range []*nodes.Session{session("b", "i1"), session("b", "i2"), session("d", "i1")} {
		p.SessionUp(s)
		p.TunnelUp(s, shop(1))
	}
	if on := p.SessionsOn(); on["b"] != 2 || on["d"] != 1 || len(on) != 2 {
		t.Errorf("sessions on nodes: %v", on)
	}
	var all []string
	p.Each(func(of roster.Agent, tunnels iter.Seq2[string, routing.Face]) {
		for key, face := range tunnels {
			all = append(all, of.Instance+" "+key+" "+face.Domain)
		}
	})
	slices.Sort(all)
	if want := []string{"i1 k shop", "i1 k shop", "i2 k shop"}; !slices.Equal(all, want) {
		t.Errorf("got %q, want %q", all, want)
	}
}
