package routing

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"sync/atomic"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/flows"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/edge/webhook"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// Face is what visitors see of an endpoint.
type Face struct {
	Target string // of the claim: a domain or a port
	Slot   string // of the claim
	Type   string
	Mode   string
	Domain string
	Port   int // tcp, udp
}

// ID names an endpoint. It is the same each time the face is served.
func (f Face) ID() string {
	sum := sha256.Sum256([]byte(f.Target + "/" + f.Slot))
	return "ep_" + hex.EncodeToString(sum[:9])
}

// Place is where the face is among all others.
func (f Face) Place() string { return f.Target + "/" + f.Slot }

// SlotOf returns the slot of a claim that a tunnel of that type and mode takes.
func SlotOf(tunnelType, mode string) string {
	if mode == wire.ModePrivate {
		return claims.SlotPrivate
	}
	switch tunnelType {
	case wire.TypeHTTP:
		return claims.SlotPlain
	case wire.TypeHTTPS, wire.TypeTLS:
		return claims.SlotTLS
	}
	return claims.SlotPort
}

// Agent is one session of an agent.
type Agent struct {
	Session  link.Session
	ClientID string
	Instance string
	// Node has the session if this one has not; empty: it is here.
	Node string
	// Leaving is set while the session is only for visitors that no other can
	// take. Reorder has endpoints see a change.
	Leaving atomic.Bool
	// Unheard is set while it is not known whether the agent still is at the other end.
	// Reorder has endpoints see a change.
	Unheard atomic.Bool
	Account *shape.Account // of the client; may be nil

	Flows flows.Table // of its UDP visitors
}

// Backend is one tunnel of an agent: where an endpoint's visitors go.
type Backend struct {
	Agent      *Agent
	Number     uint32 // within the session
	Key        string
	HostHeader string
	Requests   *message.Changes
	Answers    *message.Changes
	Unshared   bool   // a stream carries the requests of one visitor's connection only
	HTTP2      bool   // the origin is to be spoken to by HTTP/2, but for changes of protocol
	Scheme     string // of the URLs by which the origin knows itself; empty: nobody says
	Port       int    // that such URLs may have; 0: nobody says
	// Paths lead to origins of their own; longer ones come first.
	Paths []wire.ClaimPath
	// Visitors are the names of the clients that may visit a private tunnel, beside
	// the agent's own.
	Visitors []string

	forks  []*Backend // one for each of Paths
	whole  *Backend   // of a fork: whose it is
	path   string     // of a fork
	prefix string     // of a fork: path as it is told to an origin that is asked without it; else empty

	origin *origin.Origin
	busy   atomic.Int64 // visitors' requests, connections and flows with the tunnel now
	out    atomic.Bool  // it is out of turn: its origin was down, and is probed
}

// NewBackend is where an endpoint's visitors go for a claim of an agent's.
func NewBackend(a *Agent, key string, c wire.Claim) *Backend {
	return &Backend{
		Agent: a, Key: key, HostHeader: c.HostHeader, Unshared: c.Unshared, HTTP2: c.HTTP2, Scheme: c.Scheme, Port: c.Port,
		Requests: message.NewChanges(c.RequestHeaders), Answers: message.NewChanges(c.ResponseHeaders),
		Paths: c.Paths, Visitors: c.Visitors,
	}
}

// Origin is where the tunnel's, or the path's, visitors go.
func (b *Backend) Origin() *origin.Origin { return b.origin }

// Take counts a visitor's request, connection or flow with the tunnel, until Leave.
func (b *Backend) Take() { b.tunnel().busy.Add(1) }

// Leave ends what Take began.
func (b *Backend) Leave() { b.tunnel().busy.Add(-1) }

// Busy is how many visitors' requests, connections and flows are with the tunnel now.
func (b *Backend) Busy() int64 { return b.busy.Load() }

// OutOfTurn reports whether the origin was down, and is being probed.
func (b *Backend) OutOfTurn() bool { return b.out.Load() }

// end closes the streams that no request uses.
func (b *Backend) end() {
	b.origin.Close()
	for _, of := range b.forks {
		of.end()
	}
}

// same reports whether o is the same tunnel by way of the same node.
func (b *Backend) same(o *Backend) bool {
	return b.sibling(o) && b.Agent.Node == o.Agent.Node
}

// sibling reports whether o is the same tunnel, perhaps on another session.
func (b *Backend) sibling(o *Backend) bool {
	return b.Key == o.Key && b.Agent.ClientID == o.Agent.ClientID && b.Agent.Instance == o.Agent.Instance
}

// rank says how good a way to its tunnel a backend is; lower is better.
func (b *Backend) rank() int {
	n := 0
	if b.Agent.Node != "" {
		n = 1
	}
	if b.Agent.Leaving.Load() {
		n += 2
	}
	if b.Agent.Unheard.Load() {
		n += 4
	}
	return n
}

// Endpoint is a public face with the tunnels behind it.
type Endpoint struct {
	Face
	table *Table
	Since time.Time

	id          string
	open, total atomic.Int64
	turn        atomic.Uint32
	backends    atomic.Pointer[[]*Backend] // the best way to each tunnel
	spare       atomic.Pointer[[]*Backend] // the other ways, best first; nil: none
	port        Port                       // tcp, udp; else nil
	Visits      presence.Set               // that it has now
	holding     webhook.Holding
	closed      atomic.Bool // it is served no more: table.withdraw has been at it
	// Meter is what its bytes wait for, and where they are counted.
	Meter shape.Meter
}

// ID is the ID of the endpoint's face.
func (ep *Endpoint) ID() string { return ep.id }

// Holding is how many bytes are held of webhooks.
func (ep *Endpoint) Holding() int64 { return ep.holding.Bytes() }

// Enter notes a visitor, as Set.Enter does. It is to be taken out by Leave.
func (ep *Endpoint) Enter(ctx context.Context, answer presence.Answer) (context.Context, *presence.Visit) {
	ctx, v := ep.Visits.Enter(ctx, answer)
	if ep.closed.Load() { // else review finds it when it is closed
		ep.table.review(ep)
	}
	return ctx, v
}

// Leave takes a visitor out.
func (ep *Endpoint) Leave(v *presence.Visit) {
	if ep.Visits.Remove(v) && ep.closed.Load() {
		ep.table.review(ep)
	}
	v.Leave()
}

// Backends are the tunnels behind the endpoint now.
func (ep *Endpoint) Backends() []*Backend {
	if p := ep.backends.Load(); p != nil {
		return *p
	}
	return nil
}

// all returns every way to the tunnels behind the endpoint.
func (ep *Endpoint) all() []*Backend {
	list := ep.Backends()
	if p := ep.spare.Load(); p != nil {
		list = append(slices.Clone(list), *p...)
	}
	return list
}

// set makes list the ways to the tunnels behind the endpoint; Table.attach is held.
func (ep *Endpoint) set(list []*Backend) {
	best := make([]*Backend, 0, len(list))
	var spare []*Backend
	for _, b := range list {
		at := slices.IndexFunc(best, b.sibling)
		switch {
		case at < 0:
			best = append(best, b)
			continue
		case b.rank() < best[at].rank():
			b, best[at] = best[at], b
		}
		spare = append(spare, b)
	}
	if spare == nil {
		ep.spare.Store(nil)
	} else {
		slices.SortStableFunc(spare, func(a, b *Backend) int { return a.rank() - b.rank() })
		ep.spare.Store(&spare)
	}
	ep.backends.Store(&best)
}

// Leads reports whether one of the ways behind the endpoint leads to b's tunnel.
func (ep *Endpoint) Leads(b *Backend) bool { return slices.ContainsFunc(ep.all(), b.sibling) }

// Opened is what Config.Open has opened for it; nil: nothing.
func (ep *Endpoint) Opened() Port { return ep.port }

// EndFlows ends those flows of a udp endpoint that are picked, by where they go and
// from where.
func (ep *Endpoint) EndFlows(pick func(*Backend, netip.Addr) bool) {
	if ep.port != nil {
		ep.port.EndFlows(pick)
	}
}

// Held is where the bodies of the endpoint's webhooks are held.
func (ep *Endpoint) Held() *webhook.Holding { return &ep.holding }

// Counters is a snapshot of an endpoint's figures.
type Counters struct {
	Open     int64 `json:"open"`
	Total    int64 `json:"total"`
	BytesIn  int64 `json:"bytes_in"`
	BytesOut int64 `json:"bytes_out"`
}

// Counters returns the endpoint's figures.
func (ep *Endpoint) Counters() Counters {
	in, out := ep.Meter.Bytes()
	return Counters{ep.open.Load(), ep.total.Load(), in, out}
}

// Begin counts a visitor's request, connection or flow, until End.
func (ep *Endpoint) Begin() {
	ep.open.Add(1)
	ep.total.Add(1)
}

// End ends what Begin began.
func (ep *Endpoint) End() { ep.open.Add(-1) }

// Invites reports whether one of the tunnels behind a private endpoint lets the guest
// in: it is of the guest's own client, or names it.
func (ep *Endpoint) Invites(g visitor.Guest) bool {
	return slices.ContainsFunc(ep.Backends(), func(b *Backend) bool { return b.invites(g) })
}

func (b *Backend) invites(g visitor.Guest) bool {
	return b.Agent.ClientID == g.ClientID || slices.Contains(b.Visitors, g.Client) || slices.Contains(b.Visitors, wire.AnyClient)
}

// endUninvited ends the visits of those whom the endpoint no longer invites.
func (ep *Endpoint) endUninvited() {
	if ep.Mode != wire.ModePrivate {
		return
	}
	ep.Visits.EndPrivate(func(g visitor.Guest) bool { return !ep.Invites(g) })
}
