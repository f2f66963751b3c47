package relay

import (
	"net/netip"

	"adit/tunnel/relay/accesslog"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/roster"
	"adit/tunnel/wire"
)

// record passes on an access event of the edge: to the log, to the sinks, and to the
// agent whose tunnel was visited.
func (r *Relay) record(ep *routing.Endpoint, b *routing.Backend, e wire.Access) {
	r.counts.Visit(ep.Type, e)
	if !r.cfg.AccessLog {
		return
	}
	if b == nil {
		if list := ep.Backends(); len(list) > 0 {
			b = list[0]
		}
	}
	if b != nil {
		e.Key, e.ClientID = b.Key, b.Agent.ClientID
	}
	e.Node = r.node
	accesslog.Trim(&e)
	if a, err := netip.ParseAddr(e.Visitor); err == nil {
		e.Country = r.geo.Place(a)
	}
	r.access.Add(e)
	r.sinks.Access(e)
	if b == nil {
		return
	}
	s := r.roster.Newest(roster.Agent{Client: b.Agent.ClientID, Instance: b.Agent.Instance})
	if s == nil {
		if far, ok := b.Agent.Session.(*nodes.Session); ok {
			far.Access(e)
		}
		return
	}
	s.visited(e)
}
