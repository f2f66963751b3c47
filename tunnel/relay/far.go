package relay

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/claim"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// far is what other nodes have: their agents' tunnels are put behind endpoints
// here as far as the claims say that they may be.
type far struct {
	relay *Relay

	mu       sync.Mutex // taken before the roster's, never inside it
	sessions map[*nodes.Session]*farAgent
	byTarget map[string][]*farTunnel
	byAgent  map[roster.Agent][]*farAgent
	refused  map[*farTunnel]struct{} // whose port could not be opened here
}

// farAgent is an agent's session on another node.
type farAgent struct {
	session *nodes.Session
	agent   routing.Agent
	tunnels map[string]*farTunnel // by key
}

type farTunnel struct {
	of      *farAgent
	tunnel  nodes.Tunnel
	claim   wire.Claim // of the tunnel
	face    routing.Face
	backend *routing.Backend // nil while it is not behind its endpoint
}

// SessionUp takes an agent on another node in.
func (f *far) SessionUp(s *nodes.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sessions == nil {
		f.sessions, f.byTarget, f.byAgent = make(map[*nodes.Session]*farAgent), make(map[string][]*farTunnel), make(map[roster.Agent][]*farAgent)
	}
	a := &farAgent{session: s, tunnels: make(map[string]*farTunnel)}
	a.agent.Session, a.agent.ClientID, a.agent.Instance, a.agent.Node = s, s.ClientID, s.Instance, s.Node
	a.agent.Account = f.relay.accounts.Of(s.ClientID)
	a.agent.Leaving.Store(f.relay.mesh.Peers()[s.Node].Draining)
	f.sessions[s] = a
	key := roster.Agent{Client: s.ClientID, Instance: s.Instance}
	f.byAgent[key] = append(f.byAgent[key], a)
	f.relay.roster.Came(key)
}

// SessionDown takes the tunnels of a session that has ended from behind their
// endpoints.
func (f *far) SessionDown(s *nodes.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.sessions[s]
	if a == nil {
		return
	}
	delete(f.sessions, s)
	for _, t := range a.tunnels {
		f.drop(t)
	}
	key := roster.Agent{Client: s.ClientID, Instance: s.Instance}
	if list := slices.DeleteFunc(f.byAgent[key], func(o *farAgent) bool { return o == a }); len(list) > 0 {
		f.byAgent[key] = list
		return
	}
	delete(f.byAgent, key)
	f.relay.roster.Left(key, time.Now())
}

// TunnelUp takes a tunnel in, or what has changed of it.
func (f *far) TunnelUp(s *nodes.Session, t nodes.Tunnel) {
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
	v := &farTunnel{of: a, tunnel: t, claim: claim, face: routing.Face{
		Target: t.Target, Slot: t.Slot, Type: claim.Type, Mode: claim.Mode, Domain: t.Domain, Port: t.Port,
	}}
	a.tunnels[t.Key] = v
	f.byTarget[t.Target] = append(f.byTarget[t.Target], v)
	f.settle(v)
}

// TunnelDown takes a tunnel from behind its endpoint.
func (f *far) TunnelDown(s *nodes.Session, key string) {
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
func (f *far) drop(t *farTunnel) {
	list := slices.DeleteFunc(f.byTarget[t.tunnel.Target], func(o *farTunnel) bool { return o == t })
	if len(list) == 0 {
		delete(f.byTarget, t.tunnel.Target)
	} else {
		f.byTarget[t.tunnel.Target] = list
	}
	f.detach(t)
}

func (f *far) detach(t *farTunnel) {
	delete(f.refused, t)
	if t.backend != nil {
		f.relay.edge.Detach(t.face, t.backend)
		t.backend = nil
	}
}

// review looks at the tunnels of a target whose claim has changed.
func (f *far) review(target string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.byTarget[target] {
		f.settle(t)
	}
}

// settle puts a tunnel behind its endpoint if its claim says so, and takes it
// away if not: the claims, which come by another way, may be ahead of what its
// node tells or behind. f.mu is held.
func (f *far) settle(t *farTunnel) {
	r := f.relay
	// Another version may change or lead what this one must not.
	if !f.holds(t) || claim.Leads(&t.claim) != nil {
		f.detach(t)
		return
	}
	if t.backend != nil {
		return
	}
	backend := newBackend(&t.of.agent, t.tunnel.Key, t.claim)
	backend.Number = t.tunnel.Number
	if _, err := r.edge.Attach(t.face, backend); err != nil {
		if _, told := f.refused[t]; !told {
			r.log.Warn("a tunnel on another node is not served here", "node", t.of.session.Node, "target", t.face.Target, "error", err)
			if f.refused == nil {
				f.refused = make(map[*farTunnel]struct{})
			}
			f.refused[t] = struct{}{}
		}
		return
	}
	delete(f.refused, t)
	t.backend = backend
}

// retryEvery is how often ports that could not be opened are looked at again.
const retryEvery = 3 * time.Second

// retry looks whether the ports that could not be opened are free now, until ctx ends.
func (f *far) retry(ctx context.Context) {
	tick := time.NewTicker(retryEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		f.retryNow()
	}
}

func (f *far) retryNow() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for t := range f.refused {
		f.settle(t)
	}
}

func (f *far) holds(t *farTunnel) bool {
	c, ok := f.relay.store.Claims.Get(t.tunnel.Target)
	if !ok || c.ClientID != t.of.session.ClientID {
		return false
	}
	return slices.ContainsFunc(c.Holders, func(h store.Holder) bool {
		return h.Slot == t.face.Slot && h.Instance == t.of.session.Instance && h.Key == t.tunnel.Key && h.Type == t.face.Type && h.Mode == t.face.Mode
	})
}

// NodeChanged has visitors turn away from a node that ends, and tells agents.
func (f *far) NodeChanged(node string) {
	if f.relay.mesh.Peers()[node].Draining {
		var leaving []*routing.Agent
		f.mu.Lock()
		for _, a := range f.sessions {
			if a.session.Node == node && !a.agent.Leaving.Swap(true) {
				leaving = append(leaving, &a.agent)
			}
		}
		f.mu.Unlock()
		f.relay.edge.Reorder(leaving...)
	}
	f.relay.members.Look()
}

// Changed takes what another node has written to the store, which may reach this
// one later, or not for a while.
func (f *far) Changed(change []byte) {
	var c store.Change
	if err := json.Unmarshal(change, &c); err != nil {
		f.relay.log.Debug("another node told of a change that does not parse", "error", err)
		return
	}
	f.relay.store.Told(c)
}

// Datagram brings a packet of an agent on another node to its visitor here.
func (f *far) Datagram(s *nodes.Session, b []byte) {
	f.mu.Lock()
	a := f.sessions[s]
	f.mu.Unlock()
	if a != nil {
		a.agent.Flows.Bring(b)
	}
}

// connected reports whether an agent has a session on another node.
func (f *far) connected(key roster.Agent) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.byAgent[key]) > 0
}

// sessionsOn counts the agents' sessions on each other node.
func (f *far) sessionsOn() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	on := make(map[string]int)
	for s := range f.sessions {
		on[s.Node]++
	}
	return on
}

// elsewhere reports whether a tunnel of an agent is also behind its endpoint by
// way of a node that stays.
func (f *far) elsewhere(clientID, instance, key string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.byAgent[roster.Agent{Client: clientID, Instance: instance}] {
		if !a.agent.Leaving.Load() {
			if t := a.tunnels[key]; t != nil && t.backend != nil {
				return true
			}
		}
	}
	return false
}

// ofClient calls each with the tunnels of a client's agents on other nodes.
func (f *far) ofClient(clientID string, each func(instance, key string)) {
	f.each(func(a *farAgent) {
		if a.agent.ClientID != clientID {
			return
		}
		for key := range a.tunnels {
			each(a.agent.Instance, key)
		}
	})
}

// each calls see with every agent's session on another node.
func (f *far) each(see func(*farAgent)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.sessions {
		see(a)
	}
}

// local is what this node does for others.
type local struct{ relay *Relay }

func (l local) session(id string) *session { return l.relay.roster.Session(id) }

// OpenStream opens a stream to an agent that is connected here.
func (l local) OpenStream(ctx context.Context, id string) (link.Stream, error) {
	s := l.session(id)
	if s == nil {
		return nil, nodes.ErrNoSession
	}
	return s.link.OpenStream(ctx)
}

// Flow begins a UDP visitor's flow to an agent that is connected here.
func (l local) Flow(id string, endpoint uint32, answer func([]byte), over func()) nodes.Flow {
	s := l.session(id)
	if s == nil {
		return nil
	}
	return s.agent.Flows.Relay(s.agent.Session, endpoint, answer, over)
}

// Access tells an agent of its visitors at another node, if it wants to know.
func (l local) Access(id string, list []wire.Access) (wanted bool) {
	s := l.session(id)
	if s == nil || s.unobserved.Load() {
		return false
	}
	for i := range list {
		s.visited(list[i])
	}
	return true
}

// newBackend is where an endpoint's visitors go for a claim.
func newBackend(a *routing.Agent, key string, c wire.Claim) *routing.Backend {
	return &routing.Backend{
		Agent: a, Key: key, HostHeader: c.HostHeader, Unshared: c.Unshared, HTTP2: c.HTTP2,
		Requests: message.NewChanges(c.RequestHeaders), Answers: message.NewChanges(c.ResponseHeaders),
		Paths: c.Paths, Visitors: c.Visitors,
	}
}
