package edge

import (
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

// Private finds the endpoint of a private tunnel that lets the guest in. If it does
// not, that is an access event of it; nil, too, if there is none.
func (e *Edge) Private(target string, g visitor.Guest) *routing.Endpoint {
	ep := e.table.Private(target)
	if ep == nil || ep.Invites(g) {
		return ep
	}
	e.cfg.Record(ep, nil, wire.Access{
		Time: time.Now().UTC(), Endpoint: ep.ID(), Visitor: g.Addr.Addr().String(), User: g.Client, Refused: policy.RuleVisitors,
	})
	return nil
}

// Visit serves a guest whom Private has found an endpoint for, until the visit ends.
// early is what has come of its bytes already.
func (e *Edge) Visit(s link.Stream, early []byte, ep *routing.Endpoint, g visitor.Guest) {
	if v := e.admission.AdmitGuest(s, early, g); v != nil {
		e.serveRaw(v, ep, "")
	}
}
