package edge

import (
	"context"
	"errors"
	"sync"
	"time"

	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/pump"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

// rawVisit is a visit to an endpoint whose bytes or packets are not inspected (tcp, tls and
// private tunnels).
type rawVisit struct {
	edge    *Edge
	ep      *routing.Endpoint
	here    *presence.Visit
	release func()
	start   time.Time
	access  wire.Access
	of      origin.Visit
}

// enterRaw enters a visitor at an endpoint. The context ends when the visitor may no longer
// stay. If the visitor is not admitted, enterRaw aborts the connection and returns a nil
// visit. Otherwise the caller must call leave.
func (e *Edge) enterRaw(v *visitor.Conn, ep *routing.Endpoint, authority string) (context.Context, *rawVisit) {
	r := &rawVisit{edge: e, ep: ep, start: time.Now(), of: origin.Visit{Visitor: v.Addr, Edge: v.Edge, Authority: authority}}
	r.access = wire.Access{Time: r.start.UTC(), Endpoint: ep.ID(), Visitor: v.Addr.Addr().String(), Host: authority}
	ep.Begin()
	var ctx context.Context
	ctx, r.here = ep.Enter(e.life, nil)
	if v.Guest != nil {
		r.access.User, r.of.Client = v.Guest.Client, v.Guest.Client
		r.here.IsOf(v.Guest)
	}
	var let bool
	r.access.Refused, let, r.release = e.guardRaw(ep, v)
	if let {
		guest := policy.Guest{Addr: v.Addr.Addr()}
		r.here.LetIn(guest)
		if d := e.keeps(ep, nil, guest); !d.Allowed {
			r.access.Refused, let = d.Rule, false
		}
	}
	if !let {
		v.Abort()
		e.cfg.Record(ep, nil, r.access)
		r.leave()
		return ctx, nil
	}
	return ctx, r
}

func (r *rawVisit) leave() {
	r.release()
	r.ep.Leave(r.here)
	r.ep.End()
}

// record records the visit, which ended with err, and the tunnel that was used; nil means
// none.
func (r *rawVisit) record(used *routing.Backend, in, out int64, err error) {
	var down *wire.OriginError
	switch {
	case errors.As(err, &down):
		r.access.Status = 502
		r.edge.log.Debug("origin is down", "endpoint", r.access.Endpoint, "reason", down.Reason)
	case errors.Is(err, origin.ErrNoAgent):
		r.access.Status = 503
	}
	r.access.BytesIn, r.access.BytesOut, r.access.Duration = in, out, time.Since(r.start)
	r.edge.cfg.Record(r.ep, used, r.access)
}

// serveRaw forwards one connection byte for byte.
func (e *Edge) serveRaw(v *visitor.Conn, ep *routing.Endpoint, authority string) {
	ctx, r := e.enterRaw(v, ep, authority)
	if r == nil {
		return
	}
	defer r.leave()
	// A drain does not wait for the connection until an agent has accepted it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.admission.Rest(&v.Resting, cancel)
	taken := func(err error) error {
		if err == nil {
			e.admission.Work(&v.Resting)
		}
		return err
	}
	var used *routing.Backend
	var in, out int64
	err := origin.ErrNoAgent
	order := ep.Pick()
	for _, b := range order {
		used = b
		var c *origin.Conn
		c, err = b.Origin().Open(ctx, wire.StreamRaw, r.of)
		if err != nil {
			continue
		}
		b.Take()
		leave := sync.OnceFunc(b.Leave)
		defer leave()
		given := context.AfterFunc(ctx, func() { c.Reset() })
		if len(order) > 1 { // there is an alternative: wait for the answer first
			if err = taken(c.Begin()); err != nil {
				given()
				leave()
				c.Reset()
				if ctx.Err() == nil { // otherwise the visit was ended, which says nothing about the origin
					e.table.TakeOut(ep, b)
				}
				continue
			}
		} else if _, err = c.Write(nil); err != nil {
			given()
			c.Reset()
			break
		}
		given()
		in, out, err = pump.Pump(ctx, v, c, e.limits.StreamIdle, &ep.Meter, func() error {
			return taken(c.Await(r.start))
		})
		break
	}
	v.AbortIf(err)
	r.record(used, in, out, err)
}
