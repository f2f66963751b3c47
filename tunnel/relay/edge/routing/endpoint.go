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

// ID identifies an endpoint. It is the same each time the face is served.
func (f Face) ID() string {
	sum := sha256.Sum256([]byte(f.Target + "/" + f.Slot))
	return "ep_" + hex.EncodeToString(sum[:9])
}

// Place identifies the face among all others.
func (f Face) Place() string { return f.Target + "/" + f.Slot }

// SlotOf returns the slot of a claim that a tunnel of the given type and mode takes.
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
	// Node is the node that holds the session; empty means this one.
	Node string
	// Leaving is set while the session is only for visitors that no other session can take.
	// After a change, Reorder must be called.
	Leaving atomic.Bool
	// Unheard is set while it is not known whether the agent is still there. After a change,
	// Reorder must be called.
	Unheard atomic.Bool
	Account *shape.Account // the client's; may be nil

	Flows flows.Table // of the agent's UDP visitors
}

// Backend is one tunnel of an agent, to which an endpoint's visitors go.
type Backend struct {
	Agent      *Agent
	Number     uint32 // within the session
	Key        string
	HostHeader string
	Requests   *message.Changes
	Answers    *message.Changes
	Unshared   bool   // a stream carries only the requests of one visitor's connection
	HTTP2      bool   // the origin is spoken to by HTTP/2, except for changes of protocol
	Scheme     string // of the URLs by which the origin knows itself; empty: unknown
	Port       int    // that such URLs may contain; 0: unknown
	// Paths have their own origins; longer ones come first.
	Paths []wire.ClaimPath
	// Visitors are the names of the clients, besides the agent's own, that may visit a private
	// tunnel.
	Visitors []string

	forks  []*Backend // one for each of Paths
	whole  *Backend   // of a fork: the backend of the whole tunnel
	path   string     // of a fork
	prefix string     // of a fork whose path is stripped: the path as the origin is told of it

	origin *origin.Origin
	busy   atomic.Int64 // visitors' requests, connections and flows that the tunnel is serving
	out    atomic.Bool  // out of turn: the origin was down, and is being probed
}

// NewBackend returns the backend for an agent's claim.
func NewBackend(a *Agent, key string, c wire.Claim) *Backend {
	return &Backend{
		Agent: a, Key: key, HostHeader: c.HostHeader, Unshared: c.Unshared, HTTP2: c.HTTP2, Scheme: c.Scheme, Port: c.Port,
		Requests: message.NewChanges(c.RequestHeaders), Answers: message.NewChanges(c.ResponseHeaders),
		Paths: c.Paths, Visitors: c.Visitors,
	}
}

// Origin returns the origin of the tunnel, or of the path if b is a fork.
func (b *Backend) Origin() *origin.Origin { return b.origin }

// Take counts a visitor's request, connection or flow as served by the tunnel, until Leave.
func (b *Backend) Take() { b.tunnel().busy.Add(1) }

// Leave undoes Take.
func (b *Backend) Leave() { b.tunnel().busy.Add(-1) }

// Busy returns how many requests, connections and flows the tunnel is serving.
func (b *Backend) Busy() int64 { return b.busy.Load() }

// OutOfTurn reports whether the origin was down and is being probed.
func (b *Backend) OutOfTurn() bool { return b.out.Load() }

// end closes the streams that no request is using.
func (b *Backend) end() {
	b.origin.Close()
	for _, of := range b.forks {
		of.end()
	}
}

// same reports whether o is the same tunnel, reached through the same node.
func (b *Backend) same(o *Backend) bool {
	return b.sibling(o) && b.Agent.Node == o.Agent.Node
}

// sibling reports whether o is the same tunnel, possibly on another session.
func (b *Backend) sibling(o *Backend) bool {
	return b.Key == o.Key && b.Agent.ClientID == o.Agent.ClientID && b.Agent.Instance == o.Agent.Instance
}

// rank rates b as a way to its tunnel; lower is better.
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
	Visits      presence.Set               // the current visits
	holding     webhook.Holding
	closed      atomic.Bool // no longer served: Table.withdraw has been called
	// Meter limits and counts the endpoint's bytes.
	Meter shape.Meter
}

// ID returns the ID of the endpoint's face.
func (ep *Endpoint) ID() string { return ep.id }

// Holding returns how many bytes of webhooks are being held.
func (ep *Endpoint) Holding() int64 { return ep.holding.Bytes() }

// Enter adds a visitor, as Set.Enter does. Leave must follow.
func (ep *Endpoint) Enter(ctx context.Context, answer presence.Answer) (context.Context, *presence.Visit) {
	ctx, v := ep.Visits.Enter(ctx, answer)
	if ep.closed.Load() { // otherwise review finds the visitor when the endpoint is closed
		ep.table.review(ep)
	}
	return ctx, v
}

// Leave removes a visitor.
func (ep *Endpoint) Leave(v *presence.Visit) {
	if ep.Visits.Remove(v) && ep.closed.Load() {
		ep.table.review(ep)
	}
	v.Leave()
}

// Backends returns the tunnels currently behind the endpoint.
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

// set makes list the ways to the tunnels behind the endpoint. The caller holds Table.attach.
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

// Leads reports whether the endpoint still has a way to b's tunnel.
func (ep *Endpoint) Leads(b *Backend) bool { return slices.ContainsFunc(ep.all(), b.sibling) }

// Opened returns what Config.Open returned for the endpoint; nil if it has no port.
func (ep *Endpoint) Opened() Port { return ep.port }

// EndFlows ends the flows of a udp endpoint for which pick returns true, given the flow's
// backend and the visitor's address.
func (ep *Endpoint) EndFlows(pick func(*Backend, netip.Addr) bool) {
	if ep.port != nil {
		ep.port.EndFlows(pick)
	}
}

// Held returns the account of the bodies of webhooks that the endpoint holds.
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

// Begin counts a visitor's request, connection or flow as open, until End.
func (ep *Endpoint) Begin() {
	ep.open.Add(1)
	ep.total.Add(1)
}

// End undoes Begin.
func (ep *Endpoint) End() { ep.open.Add(-1) }

// Invites reports whether one of the tunnels behind a private endpoint admits the guest: it
// belongs to the guest's own client, or names that client.
func (ep *Endpoint) Invites(g visitor.Guest) bool {
	return slices.ContainsFunc(ep.Backends(), func(b *Backend) bool { return b.invites(g) })
}

func (b *Backend) invites(g visitor.Guest) bool {
	return b.Agent.ClientID == g.ClientID || slices.Contains(b.Visitors, g.Client) || slices.Contains(b.Visitors, wire.AnyClient)
}

// endUninvited ends the visits of guests whom the endpoint no longer invites.
func (ep *Endpoint) endUninvited() {
	if ep.Mode != wire.ModePrivate {
		return
	}
	ep.Visits.EndPrivate(func(g visitor.Guest) bool { return !ep.Invites(g) })
}
