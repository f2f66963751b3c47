// Package far has the agents that are connected to other nodes of the relay, and puts
// their tunnels behind endpoints here as far as the claims say that they may be. How
// nodes tell each other of agents is package nodes', which calls it.
package far

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"adit/tunnel/relay/claim"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/table"
	"adit/tunnel/wire"
)

// Edge serves visitors: *edge.Edge.
type Edge interface {
	Attach(f routing.Face, b *routing.Backend) (*routing.Endpoint, error)
	Detach(f routing.Face, b *routing.Backend)
	Lose(f routing.Face, b *routing.Backend)
	Reorder(faces ...routing.Face)
}

// Claims is what the store has of claims.
type Claims interface {
	Get(target string) (claims.Claim, bool)
}

// Policies is what the store has of policies.
type Policies interface {
	// Knows reports whether what was written of a target up to a revision of a store is
	// in force here.
	Knows(target, store string, rev uint64) bool
}

// Roster remembers since when agents are away: a *roster.Roster.
type Roster interface {
	Came(a roster.Agent)
	Left(a roster.Agent, at time.Time)
}

// Config is what Agents are made of; all of it is required.
type Config struct {
	Edge     Edge
	Claims   Claims
	Policies Policies
	// Learn has a policy be read up to a revision, and the target reviewed then. It must
	// not wait.
	Learn   func(target string, rev uint64)
	Roster  Roster
	Account func(clientID string) *shape.Account
	// Came is called when an agent has come to another node, with the node that it says
	// that it has another session with, if any. It must not wait.
	Came func(a roster.Agent, beside string)
	// Draining reports whether a node ends.
	Draining func(node string) bool
	// Told takes what another node has written to the store.
	Told func(table.Change)
	// Changed is called when a node has come, ends or has gone.
	Changed func()
	Log     *slog.Logger
}

// Agents are those that are connected to other nodes. It is a nodes.Far.
type Agents struct {
	cfg Config

	mu       sync.Mutex // taken before the roster's, never inside it
	sessions map[*nodes.Session]*agent
	byTarget map[string][]*tunnel
	byAgent  map[roster.Agent][]*agent
	byClient map[string]int       // how many sessions
	refused  map[*tunnel]struct{} // whose port could not be opened here, or whose policy is not known yet
}

// agent is an agent's session on another node.
type agent struct {
	session *nodes.Session
	agent   routing.Agent
	tunnels map[string]*tunnel // by key
}

type tunnel struct {
	of      *agent
	tunnel  nodes.Tunnel
	claim   wire.Claim // of the tunnel
	face    routing.Face
	backend *routing.Backend // nil while it is not behind its endpoint
}

// New returns Agents that know of none yet.
func New(cfg Config) *Agents {
	return &Agents{
		cfg: cfg, sessions: make(map[*nodes.Session]*agent), byTarget: make(map[string][]*tunnel),
		byAgent: make(map[roster.Agent][]*agent), byClient: make(map[string]int), refused: make(map[*tunnel]struct{}),
	}
}

// SessionUp takes an agent on another node in.
func (f *Agents) SessionUp(s *nodes.Session) {
	key := roster.Agent{Client: s.ClientID, Instance: s.Instance}
	if !s.Before {
		defer f.cfg.Came(key, s.Beside)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	a := &agent{session: s, tunnels: make(map[string]*tunnel)}
	a.agent.Session, a.agent.ClientID, a.agent.Instance, a.agent.Node = s, s.ClientID, s.Instance, s.Node
	a.agent.Account = f.cfg.Account(s.ClientID)
	a.agent.Leaving.Store(f.cfg.Draining(s.Node))
	f.sessions[s] = a
	f.byAgent[key] = append(f.byAgent[key], a)
	f.byClient[s.ClientID]++
	f.cfg.Roster.Came(key)
}

// SessionDown takes the tunnels of a session that has ended from behind their
// endpoints.
func (f *Agents) SessionDown(s *nodes.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.sessions[s]
	if a == nil {
		return
	}
	delete(f.sessions, s)
	if f.byClient[s.ClientID]--; f.byClient[s.ClientID] == 0 {
		delete(f.byClient, s.ClientID)
	}
	for _, t := range a.tunnels {
		if t.backend != nil {
			f.cfg.Edge.Lose(t.face, t.backend)
			t.backend = nil
		}
		f.drop(t)
	}
	key := roster.Agent{Client: s.ClientID, Instance: s.Instance}
	if list := slices.DeleteFunc(f.byAgent[key], func(o *agent) bool { return o == a }); len(list) > 0 {
		f.byAgent[key] = list
		return
	}
	delete(f.byAgent, key)
	f.cfg.Roster.Left(key, time.Now())
}

// TunnelUp takes a tunnel in, or what has changed of it.
func (f *Agents) TunnelUp(s *nodes.Session, t nodes.Tunnel) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.sessions[s]
	if a == nil {
		return
	}
	if old := a.tunnels[t.Key]; old != nil {
		if old.tunnel.Equal(t) {
			return
		}
		// The old tunnel is dropped after the new one is there, so that a visitor
		// always finds one of them.
		defer f.drop(old)
	}
	claim := claim.FromNode(t.Claim)
	v := &tunnel{of: a, tunnel: t, claim: claim, face: routing.Face{
		Target: t.Target, Slot: t.Slot, Type: claim.Type, Mode: claim.Mode, Domain: t.Domain, Port: t.Port,
	}}
	a.tunnels[t.Key] = v
	f.byTarget[t.Target] = append(f.byTarget[t.Target], v)
	f.settle(v)
}

// TunnelDown takes a tunnel from behind its endpoint.
func (f *Agents) TunnelDown(s *nodes.Session, key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.sessions[s]
	if a == nil || a.tunnels[key] == nil {
		return
	}
	t := a.tunnels[key]
	delete(a.tunnels, key)
	f.drop(t)
}

// drop forgets a tunnel; f.mu is held.
func (f *Agents) drop(t *tunnel) {
	list := slices.DeleteFunc(f.byTarget[t.tunnel.Target], func(o *tunnel) bool { return o == t })
	if len(list) == 0 {
		delete(f.byTarget, t.tunnel.Target)
	} else {
		f.byTarget[t.tunnel.Target] = list
	}
	f.detach(t)
}

func (f *Agents) detach(t *tunnel) {
	delete(f.refused, t)
	if t.backend != nil {
		f.cfg.Edge.Detach(t.face, t.backend)
		t.backend = nil
	}
}

// Review looks at the tunnels of a target whose claim has changed.
func (f *Agents) Review(target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.byTarget[target] {
		f.settle(t)
	}
}

// settle puts a tunnel behind its endpoint if its claim says so, and takes it
// away if not: the claims, which come by another way, may be ahead of what its
// node tells or behind. f.mu is held.
func (f *Agents) settle(t *tunnel) {
	// Another version may change or lead what this one must not.
	if !f.holds(t) || claim.Leads(&t.claim) != nil {
		f.detach(t)
		return
	}
	if t.backend != nil {
		return
	}
	// Of a policy that a third node has set this node may hear later than of the tunnel:
	// until then it would let everybody in.
	if rev := t.tunnel.PolicyRevision; rev > 0 && !f.cfg.Policies.Knows(t.face.Target, t.tunnel.Store, rev) {
		f.refused[t] = struct{}{}
		f.cfg.Learn(t.face.Target, rev)
		return
	}
	backend := routing.NewBackend(&t.of.agent, t.tunnel.Key, t.claim)
	backend.Number = t.tunnel.Number
	if _, err := f.cfg.Edge.Attach(t.face, backend); err != nil {
		if _, told := f.refused[t]; !told {
			f.cfg.Log.Warn("a tunnel on another node is not served here", "node", t.of.session.Node, "target", t.face.Target, "error", err)
			f.refused[t] = struct{}{}
		}
		return
	}
	delete(f.refused, t)
	t.backend = backend
}

// retryEvery is how often what could not be served is looked at again.
const retryEvery = 3 * time.Second

// Run looks whether the ports that could not be opened are free now, and policies known,
// until ctx ends.
func (f *Agents) Run(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		f.retry()
	}
}

func (f *Agents) retry() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.refused {
		f.settle(t)
	}
}

func (f *Agents) holds(t *tunnel) bool {
	c, ok := f.cfg.Claims.Get(t.tunnel.Target)
	if !ok || c.ClientID != t.of.session.ClientID {
		return false
	}
	return slices.ContainsFunc(c.Holders, func(h claims.Holder) bool {
		return h.Slot == t.face.Slot && h.Instance == t.of.session.Instance && h.Key == t.tunnel.Key && h.Type == t.face.Type && h.Mode == t.face.Mode
	})
}

// NodeChanged has visitors turn away from a node that ends, and tells agents.
func (f *Agents) NodeChanged(node string) {
	if f.cfg.Draining(node) {
		var left []routing.Face
		f.mu.Lock()
		for _, a := range f.sessions {
			if a.session.Node == node && !a.agent.Leaving.Swap(true) {
				for _, t := range a.tunnels {
					left = append(left, t.face)
				}
			}
		}
		f.mu.Unlock()
		f.cfg.Edge.Reorder(left...)
	}
	f.cfg.Changed()
}

// Changed takes what another node has written to the store, which may reach this
// one later, or not for a while.
func (f *Agents) Changed(change []byte) {
	var c table.Change
	if err := json.Unmarshal(change, &c); err != nil {
		f.cfg.Log.Debug("another node told of a change that does not parse", "error", err)
		return
	}
	f.cfg.Told(c)
}

// Datagram brings a packet of an agent on another node to its visitor here.
func (f *Agents) Datagram(s *nodes.Session, b []byte) {
	f.mu.Lock()
	a := f.sessions[s]
	f.mu.Unlock()
	if a != nil {
		a.agent.Flows.Bring(b)
	}
}

// Connected reports whether an agent has a session on another node.
func (f *Agents) Connected(key roster.Agent) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byAgent[key]) > 0
}

// Has reports whether an agent of a client has a session on another node.
func (f *Agents) Has(clientID string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.byClient[clientID] > 0
}

// SessionsOn counts the agents' sessions on each other node.
func (f *Agents) SessionsOn() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	on := make(map[string]int)
	for s := range f.sessions {
		on[s.Node]++
	}
	return on
}

// Serves reports whether a tunnel of an agent is behind its endpoint by way of a node
// that stays.
func (f *Agents) Serves(of roster.Agent, key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.byAgent[of] {
		if !a.agent.Leaving.Load() {
			if t := a.tunnels[key]; t != nil && t.backend != nil {
				return true
			}
		}
	}
	return false
}

// Each calls see with every session of an agent on another node, and the faces of its
// tunnels by their keys, which end with the call. see must not call any of f's methods.
func (f *Agents) Each(see func(of roster.Agent, tunnels iter.Seq2[string, routing.Face])) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.sessions {
		see(roster.Agent{Client: a.agent.ClientID, Instance: a.agent.Instance}, a.faces)
	}
}

func (a *agent) faces(yield func(string, routing.Face) bool) {
	for key, t := range a.tunnels {
		if !yield(key, t.face) {
			return
		}
	}
}
