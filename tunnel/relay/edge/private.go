package edge

import (
	"context"
	"io"
	"sync"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/udp"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

// Private returns the endpoint of a private tunnel that admits the guest. It returns nil if
// there is none, or if the endpoint does not admit the guest, which it records as an access
// event.
func (e *Edge) Private(ctx context.Context, target string, g visitor.Guest) *routing.Endpoint {
	ep := e.table.Private(target)
	if ep == nil && e.table.AwaitPrivate(ctx, target, g) {
		ep = e.table.Private(target)
	}
	if ep == nil || ep.Invites(g) {
		return ep
	}
	e.cfg.Record(ep, nil, wire.Access{
		Time: time.Now().UTC(), Endpoint: ep.ID(), Visitor: g.Addr.Addr().String(), User: g.Client, Refused: policy.RuleVisitors,
	})
	return nil
}

// Visit serves a guest for whom Private has returned a tcp endpoint, until the visit ends.
// early is what has already been read from the stream.
func (e *Edge) Visit(s link.Stream, early []byte, ep *routing.Endpoint, g visitor.Guest) {
	if v := e.admission.AdmitGuest(s, early, g); v != nil {
		e.serveRaw(v, ep, "")
	}
}

// VisitUDP serves a guest for whom Private has returned a udp endpoint, until the visit or its
// stream ends. The guest's packets come by the session of at. begun is called with the number
// of the visit's flow in that session.
func (e *Edge) VisitUDP(s link.Stream, at *routing.Agent, ep *routing.Endpoint, g visitor.Guest, begun func(flow uint32) error) {
	v := e.admission.AdmitGuest(s, nil, g)
	if v == nil {
		return
	}
	ctx, r := e.enterRaw(v, ep, "")
	if r == nil {
		return
	}
	defer r.leave()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	visit, used := e.beginUDP(at, ep, g)
	if visit == nil {
		v.Abort()
		r.record(nil, 0, 0, origin.ErrNoAgent)
		return
	}
	// A guest that does not read may block begun, and the visit must be able to end even then.
	var talking sync.WaitGroup
	talking.Go(func() {
		defer cancel() // the visit ends when the guest ends the stream
		if begun(visit.Number()) == nil {
			_, _ = io.ReadFull(v, make([]byte, 1))
		}
	})
	// A drain does not wait for this visit, and the visit that has been silent longest makes
	// room.
	rest := func() { e.admission.Rest(&v.Resting, cancel) }
	rest()
	visit.Wait(ctx, rest)
	visit.End()
	v.Close()
	talking.Wait()
	in, out := visit.Passed()
	r.record(used, in, out, nil)
}

// beginUDP begins a guest's flow with one of the endpoint's tunnels. It returns nil if it
// cannot.
func (e *Edge) beginUDP(at *routing.Agent, ep *routing.Endpoint, g visitor.Guest) (*udp.Visit, *routing.Backend) {
	port, ok := ep.Opened().(*udp.Private)
	order := ep.Pick()
	if !ok || len(order) == 0 {
		return nil, nil
	}
	visit, err := port.Begin(at, g, order[0])
	if err != nil {
		return nil, nil
	}
	return visit, order[0]
}
