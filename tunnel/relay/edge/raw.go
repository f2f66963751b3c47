package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

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

func (l *portListener) stopAccepting() {
	if l.tcp != nil {
		l.close()
	}
}

func (l *portListener) close() {
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

// openPort opens the port of a tcp or udp endpoint and serves it.
func (e *Edge) openPort(ep *Endpoint) error {
	addr := net.JoinHostPort(e.cfg.PortHost, strconv.Itoa(ep.Port))
	l := &portListener{closed: make(chan struct{})}
	switch ep.Type {
	case wire.TypeTCP:
		if ep.Mode == wire.ModePrivate { // its visitors come by their sessions
			return nil
		}
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			return fmt.Errorf("open port: %w", err)
		}
		l.tcp = ln
		e.ports.Go(func() {
			_ = acceptEach(e.life, ln, l.closed, func(conn net.Conn) {
				e.ports.Go(func() {
					v := e.admit(conn)
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
			return fmt.Errorf("open port: %w", err)
		}
		udp := conn.(*net.UDPConn)
		l.udp = newUDPPort(e, ep, udp, l.closed)
		e.ports.Go(l.udp.serve)
	default:
		return nil
	}
	ep.listener = l
	return nil
}

// serveRaw forwards one connection byte for byte (tcp, tls, and private ones).
func (e *Edge) serveRaw(v *visitor, ep *Endpoint, authority string) {
	start := time.Now()
	defer ep.begin()()
	access := wire.Access{Time: start.UTC(), Endpoint: ep.ID(), Visitor: v.addr.Addr().String(), Host: authority}
	ctx, here := ep.enter(e.life, nil)
	defer here.leave()
	of := visit{visitor: v.addr, edge: v.edge, authority: authority}
	if v.private != nil {
		access.User, of.client = v.private.Client, v.private.Client
		here.isOf(v.private)
	}
	refused, let, release := e.guardRaw(ep, v)
	defer release()
	if let {
		guest := policy.Guest{Addr: v.addr.Addr()}
		here.letIn(guest)
		if d := e.keeps(ep, nil, guest); !d.Allowed {
			refused, let = d.Rule, false
		}
	}
	access.Refused = refused
	if !let {
		v.abort()
		e.cfg.Record(ep, nil, access)
		return
	}
	// Until an agent has taken it, the connection is none that a drain waits for.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.visits.rest(v, cancel)
	taken := func(err error) error {
		if err == nil {
			e.visits.work(v)
		}
		return err
	}
	var used *Backend
	var in, out int64
	err := errNoAgent
	order := ep.pick()
	for _, b := range order {
		used = b
		var c *originConn
		c, err = e.openStream(ctx, b, wire.StreamRaw, of)
		if err != nil {
			continue
		}
		b.busy.Add(1)
		leave := sync.OnceFunc(func() { b.busy.Add(-1) })
		defer leave()
		given := context.AfterFunc(ctx, func() { c.Reset() })
		if len(order) > 1 { // there is another to turn to: wait for the answer first
			if err = taken(c.begin()); err != nil {
				given()
				leave()
				c.Reset()
				if ctx.Err() == nil { // else the visit was ended, whatever its origin is like
					e.takeOut(ep, b)
				}
				continue
			}
		} else if _, err = c.Write(nil); err != nil {
			given()
			c.Reset()
			break
		}
		given()
		in, out, err = pump(ctx, v, c, e.limits.StreamIdle, ep, func() error {
			c.SetReadDeadline(start.Add(answerTime + openTime))
			defer c.SetReadDeadline(time.Time{})
			c.read.Lock()
			defer c.read.Unlock()
			return taken(c.answer())
		})
		break
	}
	v.abortIf(err)
	var down *wire.OriginError
	switch {
	case errors.As(err, &down):
		access.Status = 502
		e.log.Debug("origin is down", "endpoint", access.Endpoint, "reason", down.Reason)
	case errors.Is(err, errNoAgent):
		access.Status = 503
	}
	access.BytesIn, access.BytesOut, access.Duration = in, out, time.Since(start)
	e.cfg.Record(ep, used, access)
}

// abortIf ends the connection: as broken if err says that it was not all.
func (v *visitor) abortIf(err error) {
	if err != nil {
		v.abort()
		return
	}
	v.Close()
}
