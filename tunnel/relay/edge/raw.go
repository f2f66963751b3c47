package edge

import (
	"context"
	"errors"
	"sync"
	"time"

	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/pump"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

// serveRaw forwards one connection byte for byte (tcp, tls, and private ones).
func (e *Edge) serveRaw(v *visitor.Conn, ep *routing.Endpoint, authority string) {
	start := time.Now()
	ep.Begin()
	defer ep.End()
	access := wire.Access{Time: start.UTC(), Endpoint: ep.ID(), Visitor: v.Addr.Addr().String(), Host: authority}
	ctx, here := ep.Enter(e.life, nil)
	defer ep.Leave(here)
	of := origin.Visit{Visitor: v.Addr, Edge: v.Edge, Authority: authority}
	if v.Guest != nil {
		access.User, of.Client = v.Guest.Client, v.Guest.Client
		here.IsOf(v.Guest)
	}
	refused, let, release := e.guardRaw(ep, v)
	defer release()
	if let {
		guest := policy.Guest{Addr: v.Addr.Addr()}
		here.LetIn(guest)
		if d := e.keeps(ep, nil, guest); !d.Allowed {
			refused, let = d.Rule, false
		}
	}
	access.Refused = refused
	if !let {
		v.Abort()
		e.cfg.Record(ep, nil, access)
		return
	}
	// Until an agent has taken it, the connection is none that a drain waits for.
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
		c, err = b.Origin().Open(ctx, wire.StreamRaw, of)
		if err != nil {
			continue
		}
		b.Take()
		leave := sync.OnceFunc(b.Leave)
		defer leave()
		given := context.AfterFunc(ctx, func() { c.Reset() })
		if len(order) > 1 { // there is another to turn to: wait for the answer first
			if err = taken(c.Begin()); err != nil {
				given()
				leave()
				c.Reset()
				if ctx.Err() == nil { // else the visit was ended, whatever its origin is like
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
			return taken(c.Await(start))
		})
		break
	}
	v.AbortIf(err)
	var down *wire.OriginError
	switch {
	case errors.As(err, &down):
		access.Status = 502
		e.log.Debug("origin is down", "endpoint", access.Endpoint, "reason", down.Reason)
	case errors.Is(err, origin.ErrNoAgent):
		access.Status = 503
	}
	access.BytesIn, access.BytesOut, access.Duration = in, out, time.Since(start)
	e.cfg.Record(ep, used, access)
}
