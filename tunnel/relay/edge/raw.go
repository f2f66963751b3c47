package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/pump"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

// udpReadBuffer holds a burst of visitors' packets while the edge has no turn.
const udpReadBuffer = 4 << 20

// udpBatch is how many packets a busy port reads at once.
const udpBatch = 16

// portListener is the public port of a tcp or udp endpoint.
type portListener struct {
	tcp    net.Listener
	udp    *udpPort
	closed chan struct{}
	once   sync.Once
}

// StopAccepting implements Port. Flows go on.
func (l *portListener) StopAccepting() {
	if l.tcp != nil {
		l.Close()
	}
}

// EndFlows implements Port.
func (l *portListener) EndFlows(pick func(*routing.Backend, netip.Addr) bool) {
	if l.udp != nil {
		l.udp.end(func(f *flow) bool { return pick(f.backend, f.visitor.Addr()) })
	}
}

// Close implements Port.
func (l *portListener) Close() {
	l.once.Do(func() {
		close(l.closed)
		if l.tcp != nil {
			l.tcp.Close()
		}
		if l.udp != nil {
			l.udp.conn.Close()
		}
	})
}

// openPort opens the port of a tcp or udp endpoint and serves it; nil: it has none.
func (e *Edge) openPort(ep *routing.Endpoint) (routing.Port, error) {
	addr := net.JoinHostPort(e.cfg.PortHost, strconv.Itoa(ep.Port))
	l := &portListener{closed: make(chan struct{})}
	switch ep.Type {
	case wire.TypeTCP:
		if ep.Mode == wire.ModePrivate { // its visitors come by their sessions
			return nil, nil
		}
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("open port: %w", err)
		}
		l.tcp = ln
		e.ports.Go(func() {
			visitor.AcceptEach(e.life, ln, l.closed, func(conn net.Conn) {
				e.ports.Go(func() {
					v := e.admission.Admit(conn)
					if v == nil {
						conn.Close()
						return
					}
					e.serveRaw(v, ep, "")
				})
			})
		})
	case wire.TypeUDP:
		conn, err := net.ListenPacket("udp", addr)
		if err != nil {
			return nil, fmt.Errorf("open port: %w", err)
		}
		udp := conn.(*net.UDPConn)
		l.udp = newUDPPort(e, ep, udp, l.closed)
		e.ports.Go(l.udp.serve)
	default:
		return nil, nil
	}
	return l, nil
}

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
