// Package visits leads connections, and flows of packets, to private tunnels of the relay's other
// clients: those that arrive at the local addresses declared for such tunnels, and single ones. How
// to ask the relay for a stream or flow to such a tunnel is left to whoever creates a Visits.
package visits

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/sockio"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/splice"
	"adit/tunnel/agent/traffic"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

const (
	// maxGuests limits the open connections of one visit.
	maxGuests = 256
	// maxWays limits those of all visits. The relay lets a session have 1,024 streams, and the
	// agent needs some of them for its own requests.
	maxWays = 896
	// listenAgain is how long to wait before trying again to listen on a port that another program
	// has.
	listenAgain = 5 * time.Second
)

// States of a Visit.
const (
	StateListening = "listening"
	StateFailed    = "failed" // its address cannot be listened on now; Error says why
)

// Visit is a snapshot of the state of a definition.Visit.
type Visit struct {
	definition.Visit
	State string `json:"state"`
	// Error is why State is StateFailed, or why the most recent connection was not led on.
	Error       string              `json:"error"`
	Connections traffic.Connections `json:"connections"`
	Bytes       traffic.Bytes       `json:"bytes"`
}

// Visits holds the declared visits. It is safe for concurrent use.
type Visits struct {
	log     *slog.Logger
	dialer  Dialer
	changed chan struct{} // tells Run to look; room for one
	ways    atomic.Int64  // that are open, or asked for

	mu  sync.Mutex
	all map[definition.Visit]*visit
}

// Dialer asks the relay for ways to private tunnels, named CLIENT/NAME. Its errors are written for
// people.
type Dialer interface {
	DialPrivate(ctx context.Context, tunnel string) (link.Stream, error)
	// DialPrivateUDP opens a flow; answer receives its answers, as Flows.Open says.
	DialPrivateUDP(ctx context.Context, tunnel string, answer func(payloads [][]byte)) (*Flow, error)
}

// New returns Visits that use dialer to reach tunnels.
func New(log *slog.Logger, dialer Dialer) *Visits {
	return &Visits{log: log, dialer: dialer, changed: make(chan struct{}, 1), all: make(map[definition.Visit]*visit)}
}

// enter counts one more way to a tunnel, until leave, or returns why there can be none now.
func (vs *Visits) enter() error {
	if vs.ways.Add(1) > maxWays {
		vs.leave()
		return &refusal.Error{Code: refusal.CodeTooManyStreams, Message: fmt.Sprintf("%d visits are open; close one first", maxWays)}
	}
	return nil
}

func (vs *Visits) leave() { vs.ways.Add(-1) }

// place is where a visit listens.
type place struct{ kind, addr string }

func placeOf(v definition.Visit) place { return place{v.Type, v.Listen} }

type visit struct {
	spec     definition.Visit
	end      context.CancelFunc // nil until Run has begun it
	after    <-chan struct{}    // closed when the address is free that a visit before had; nil: it is
	closed   chan struct{}      // closed when the address is not listened on any more
	counters traffic.Counters

	mu    sync.Mutex
	state string
	fault string
}

// note records the state of the visit, and reports whether it is new.
func (v *visit) note(state, fault string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	fresh := v.state != state || v.fault != fault
	v.state, v.fault = state, fault
	return fresh
}

// List returns the declared visits, by address.
func (vs *Visits) List() []Visit {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	out := make([]Visit, 0, len(vs.all))
	for _, v := range vs.all {
		v.mu.Lock()
		s := Visit{
			Visit: v.spec, State: v.state, Error: v.fault,
			Connections: v.counters.Connections(), Bytes: v.counters.Bytes(),
		}
		v.mu.Unlock()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Visit) int { return cmp.Or(cmp.Compare(a.Listen, b.Listen), cmp.Compare(a.Type, b.Type)) })
	return out
}

// Declare replaces the declared visits with those of specs. Unchanged ones are left alone. If one
// is wrong, nothing changes, and a *definition.DeclareError says which. Run keeps them.
func (vs *Visits) Declare(specs []definition.Visit) error {
	wanted, err := definition.CheckVisits(specs)
	if err != nil {
		return err
	}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	free := map[place]<-chan struct{}{}
	for want, v := range vs.all {
		if slices.Contains(wanted, want) {
			continue
		}
		delete(vs.all, want)
		if v.end == nil {
			free[placeOf(want)] = v.after
			continue
		}
		v.end()
		free[placeOf(want)] = v.closed
	}
	for _, want := range wanted {
		if vs.all[want] == nil {
			vs.all[want] = &visit{
				spec: want, after: free[placeOf(want)], closed: make(chan struct{}), state: StateFailed, fault: "it does not listen yet",
			}
		}
	}
	select {
	case vs.changed <- struct{}{}:
	default:
	}
	return nil
}

// Run listens on the addresses of the declared visits until ctx ends.
func (vs *Visits) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-vs.changed:
		}
		vs.mu.Lock()
		for _, v := range vs.all {
			if v.end == nil {
				life, end := context.WithCancel(ctx)
				v.end = end
				wg.Go(func() { vs.keep(life, v) })
			}
		}
		vs.mu.Unlock()
	}
}

// keep listens for one visit until ctx ends, and retries if something prevents it.
func (vs *Visits) keep(ctx context.Context, v *visit) {
	var guests sync.WaitGroup
	defer guests.Wait()
	defer close(v.closed)
	if v.after != nil {
		<-v.after
	}
	for {
		err := vs.listen(ctx, v, &guests)
		if ctx.Err() != nil {
			return
		}
		if v.note(StateFailed, describeListen(err)) {
			vs.log.Warn("visits cannot be led on; it is tried again", "listen", v.spec.Listen, "tunnel", v.spec.Tunnel, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// listen listens for a visit and serves it. guests are those still connected when it returns.
func (vs *Visits) listen(ctx context.Context, v *visit, guests *sync.WaitGroup) error {
	listening := func() {
		v.note(StateListening, "")
		vs.log.Info("visits are led on", "listen", v.spec.Listen, "type", v.spec.Type, "tunnel", v.spec.Tunnel)
	}
	if v.spec.Type == wire.TypeUDP {
		conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", v.spec.Listen)
		if err != nil {
			return err
		}
		listening()
		return vs.servePackets(ctx, v, conn.(*net.UDPConn))
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", v.spec.Listen)
	if err != nil {
		return err
	}
	listening()
	return vs.serve(ctx, v, ln, guests)
}

// describeListen says in one sentence why it is not possible to listen on an address.
func describeListen(err error) string {
	if op := new(net.OpError); errors.As(err, &op) {
		err = op.Err
	}
	return "cannot listen: " + err.Error() + "; adit retries automatically"
}

// serve leads connections from ln to the tunnel, until ctx ends or ln fails.
func (vs *Visits) serve(ctx context.Context, v *visit, ln net.Listener, guests *sync.WaitGroup) error {
	defer context.AfterFunc(ctx, func() { ln.Close() })()
	defer ln.Close()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return err
		}
		if !v.counters.TryEnter(maxGuests) {
			conn.Close()
			continue
		}
		guests.Go(func() {
			defer v.counters.Leave()
			vs.lead(ctx, v, conn.(*net.TCPConn))
		})
	}
}

// lead leads one connection to the tunnel.
func (vs *Visits) lead(ctx context.Context, v *visit, conn *net.TCPConn) {
	taken := false
	err := vs.visit(ctx, v.spec.Tunnel, func() (splice.HalfCloser, error) {
		taken = true
		v.note(StateListening, "")
		return sockio.New(conn), nil
	}, func(to, from int) {
		v.counters.In(to)
		v.counters.Out(from)
	})
	if taken {
		return
	}
	_ = conn.SetLinger(0) // who came learns that it did not work
	conn.Close()
	if ctx.Err() == nil {
		vs.notLed(v, err)
	}
}

// notLed reports why a guest did not reach the tunnel. A program may try again and again.
func (vs *Visits) notLed(v *visit, err error) {
	if v.note(StateListening, err.Error()) {
		vs.log.Warn("a visit was not led on", "tunnel", v.spec.Tunnel, "error", err)
	}
}

// Visit leads a connection to another client's private tunnel, named CLIENT/NAME, until both
// directions have ended or ctx ends. Once the relay has admitted the visit, Visit calls take for
// the connection, and closes that itself. An error before that gives the reason, and take is not
// called.
func (vs *Visits) Visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error)) error {
	return vs.visit(ctx, tunnel, take, func(int, int) {})
}

// visit is like Visit, and calls moved with the number of bytes that go to the tunnel and come from
// it.
func (vs *Visits) visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error), moved func(to, from int)) error {
	if err := vs.enter(); err != nil {
		return err
	}
	defer vs.leave()
	stream, err := vs.dialer.DialPrivate(ctx, tunnel)
	if err != nil {
		return err
	}
	defer stream.Close()
	local, err := take()
	if err != nil {
		stream.Reset()
		return err
	}
	defer local.Close()
	abort := sync.OnceFunc(func() {
		stream.Reset()
		if tcp, ok := local.(interface{ SetLinger(sec int) error }); ok {
			_ = tcp.SetLinger(0) // it is cut, not ended
		}
		local.Close()
	})
	defer context.AfterFunc(ctx, abort)()
	var wg sync.WaitGroup
	wg.Go(func() {
		err := splice.Half(stream, local, func(b []byte) { moved(len(b), 0) }, nil)
		if err != nil || stream.CloseWrite() != nil {
			abort()
		}
	})
	err = splice.Half(local, stream, func(b []byte) { moved(0, len(b)) }, nil)
	if err != nil || local.CloseWrite() != nil {
		abort()
	}
	wg.Wait()
	return nil
}
