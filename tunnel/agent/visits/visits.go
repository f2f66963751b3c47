// Package visits leads connections, and flows of packets, to private tunnels of the
// relay's other clients: what comes by the addresses on this machine that are declared for
// them, and single ones. How the relay is asked for a stream or flow to such a tunnel is
// left to who makes a Visits.
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
	// maxGuests bounds the connections of one visit that are open at once.
	maxGuests = 256
	// maxWays bounds those of all visits. The relay lets a session have 1,024 streams, and
	// what the agent has to ask it goes by such, too.
	maxWays = 896
	// listenAgain is how long a port that is another program's is left to it.
	listenAgain = 5 * time.Second
)

// States of a Visit.
const (
	StateListening = "listening"
	StateFailed    = "failed" // its address cannot be listened on now; Error says why
)

// Visit is a snapshot of what became of a definition.Visit.
type Visit struct {
	definition.Visit
	State string `json:"state"`
	// Error is why State is StateFailed, or why the newest connection was not led on.
	Error       string              `json:"error"`
	Connections traffic.Connections `json:"connections"`
	Bytes       traffic.Bytes       `json:"bytes"`
}

// Visits are the declared ones. They are for several goroutines at once.
type Visits struct {
	log     *slog.Logger
	dialer  Dialer
	changed chan struct{} // tells Run to look; room for one
	ways    atomic.Int64  // that are open, or asked for

	mu  sync.Mutex
	all map[definition.Visit]*visit
}

// Dialer asks the relay for ways to private tunnels, which are called CLIENT/NAME. Its
// errors are for people to read.
type Dialer interface {
	DialPrivate(ctx context.Context, tunnel string) (link.Stream, error)
	// DialPrivateUDP opens a flow, whose answers answer takes as Flows.Open says.
	DialPrivateUDP(ctx context.Context, tunnel string, answer func(payloads [][]byte)) (*Flow, error)
}

// New returns Visits that go by what the dialer opens.
func New(log *slog.Logger, dialer Dialer) *Visits {
	return &Visits{log: log, dialer: dialer, changed: make(chan struct{}, 1), all: make(map[definition.Visit]*visit)}
}

// enter counts one more way to a tunnel, until leave, or says why there can be none now.
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

// note notes how the visit is, and reports whether that is new.
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

// Declare makes the visits those of specs. What did not change is not touched. If
// one is wrong nothing changes, and a *definition.DeclareError says which. Run keeps them.
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

// Run listens for the declared visits until ctx ends.
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

// keep listens for one visit until ctx ends, and again where something is in the
// way.
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

// listen listens for a visit and serves it. guests are who is left when it returns.
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

// describeListen says in one sentence why an address cannot be listened on.
func describeListen(err error) string {
	if op := new(net.OpError); errors.As(err, &op) {
		err = op.Err
	}
	return "cannot listen: " + err.Error() + "; adit retries automatically"
}

// serve leads what comes by ln to the tunnel, until ctx ends or ln fails.
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

// notLed tells of what kept a guest from the tunnel. A program may try again and again.
func (vs *Visits) notLed(v *visit, err error) {
	if v.note(StateListening, err.Error()) {
		vs.log.Warn("a visit was not led on", "tunnel", v.spec.Tunnel, "error", err)
	}
}

// Visit leads a connection to another client's private tunnel, which is called
// CLIENT/NAME, until both directions are over or ctx ends. Once the relay has let it
// in, take gives the connection, and closing that is left to Visit; an error before
// that says why not, and take is not called.
func (vs *Visits) Visit(ctx context.Context, tunnel string, take func() (splice.HalfCloser, error)) error {
	return vs.visit(ctx, tunnel, take, func(int, int) {})
}

// visit is Visit with moved told how many bytes go to the tunnel and come from it.
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
