package edge

import (
	"slices"
	"time"

	"adit/internal/natural"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// Private finds the endpoint of a private tunnel that lets the guest in. If it does
// not, that is an access event of it; nil, too, if there is none.
func (e *Edge) Private(target string, g visitor.Guest) *Endpoint {
	ep := e.table.get(Face{Target: target, Slot: store.SlotPrivate}.place())
	if ep == nil || ep.invites(g) {
		return ep
	}
	e.cfg.Record(ep, nil, wire.Access{
		Time: time.Now().UTC(), Endpoint: ep.ID(), Visitor: g.Addr.Addr().String(), User: g.Client, Refused: policy.RuleVisitors,
	})
	return nil
}

// invites reports whether one of the tunnels behind a private endpoint lets the guest
// in: it is of the guest's own client, or names it.
func (ep *Endpoint) invites(g visitor.Guest) bool {
	return slices.ContainsFunc(ep.Backends(), func(b *Backend) bool {
		return b.Agent.ClientID == g.ClientID || slices.Contains(b.Visitors, g.Client) || slices.Contains(b.Visitors, wire.AnyClient)
	})
}

// Invitations are the targets of the private tunnels that let the guest in, sorted. What
// only the guest's own instance serves is not among them.
func (e *Edge) Invitations(g visitor.Guest, instance string) []string {
	foreign := func(b *Backend) bool { return b.Agent.ClientID != g.ClientID || b.Agent.Instance != instance }
	var targets []string
	e.table.mu.RLock()
	for _, ep := range e.table.endpoints {
		if ep.Mode == wire.ModePrivate && ep.invites(g) && slices.ContainsFunc(ep.Backends(), foreign) {
			targets = append(targets, ep.Target)
		}
	}
	e.table.mu.RUnlock()
	slices.SortFunc(targets, natural.Compare)
	return targets
}

// endUninvited ends the visits of those whom the endpoint no longer invites.
func (ep *Endpoint) endUninvited() {
	if ep.Mode != wire.ModePrivate {
		return
	}
	ep.Visits.EndPrivate(func(g visitor.Guest) bool { return !ep.invites(g) })
}

// Visit serves a guest whom Private has found an endpoint for, until the visit ends.
// early is what has come of its bytes already.
func (e *Edge) Visit(s link.Stream, early []byte, ep *Endpoint, g visitor.Guest) {
	if v := e.admission.AdmitGuest(s, early, g); v != nil {
		e.serveRaw(v, ep, "")
	}
}
