package agent

import (
	"cmp"
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"adit/internal/sockio"
	"adit/tunnel/agent/spec"
	"adit/tunnel/agent/splice"
	"adit/tunnel/agent/traffic"
)

const (
	// maxGuests bounds the connections of one visit that are open at once.
	maxGuests = 256
	// listenAgain is how long a port that is another program's is left to it.
	listenAgain = 5 * time.Second
)

// States of a Visit.
const (
	VisitListening = "listening"
	VisitFailed    = "failed" // its address cannot be listened on now; Error says why
)

// Visit is a snapshot of what became of a spec.Visit.
type Visit struct {
	spec.Visit
	State string `json:"state"`
	// Error is why State is VisitFailed, or why the newest connection was not led on.
	Error       string              `json:"error"`
	Connections traffic.Connections `json:"connections"`
	Bytes       traffic.Bytes       `json:"bytes"`
}

// visits are the declared ones.
type visits struct {
	changed chan struct{} // tells keepVisits to look; room for one

	mu  sync.Mutex
	all map[spec.Visit]*visit
}

type visit struct {
	spec     spec.Visit
	end      context.CancelFunc // nil until keepVisits has begun it
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

// Visits returns the declared visits, by address.
func (a *Agent) Visits() []Visit {
	a.visits.mu.Lock()
	defer a.visits.mu.Unlock()
	out := make([]Visit, 0, len(a.visits.all))
	for _, v := range a.visits.all {
		v.mu.Lock()
		s := Visit{
			Visit: v.spec, State: v.state, Error: v.fault,
			Connections: v.counters.Connections(), Bytes: v.counters.Bytes(),
		}
		v.mu.Unlock()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Visit) int { return cmp.Compare(a.Listen, b.Listen) })
	return out
}

// DeclareVisits makes the visits those of specs. What did not change is not touched. If
// one is wrong nothing changes, and a *spec.DeclareError says which. Run keeps them.
func (a *Agent) DeclareVisits(specs []spec.Visit) error {
	wanted, err := spec.CheckVisits(specs)
	if err != nil {
		return err
	}
	a.visits.mu.Lock()
	defer a.visits.mu.Unlock()
	free := map[string]<-chan struct{}{} // by address
	for want, v := range a.visits.all {
		if slices.Contains(wanted, want) {
			continue
		}
		delete(a.visits.all, want)
		if v.end == nil {
			free[want.Listen] = v.after
			continue
		}
		v.end()
		free[want.Listen] = v.closed
	}
	for _, want := range wanted {
		if a.visits.all[want] == nil {
			a.visits.all[want] = &visit{
				spec: want, after: free[want.Listen], closed: make(chan struct{}), state: VisitFailed, fault: "it does not listen yet",
			}
		}
	}
	select {
	case a.visits.changed <- struct{}{}:
	default:
	}
	return nil
}

// keepVisits listens for the declared visits until ctx ends.
func (a *Agent) keepVisits(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.visits.changed:
		}
		a.visits.mu.Lock()
		for _, v := range a.visits.all {
			if v.end == nil {
				life, end := context.WithCancel(ctx)
				v.end = end
				wg.Go(func() { a.keepVisit(life, v) })
			}
		}
		a.visits.mu.Unlock()
	}
}

// keepVisit listens for one visit until ctx ends, and again where something is in the
// way.
func (a *Agent) keepVisit(ctx context.Context, v *visit) {
	var guests sync.WaitGroup
	defer guests.Wait()
	defer close(v.closed)
	if v.after != nil {
		<-v.after
	}
	for {
		ln, err := new(net.ListenConfig).Listen(ctx, "tcp", v.spec.Listen)
		if err == nil {
			v.note(VisitListening, "")
			a.log.Info("visits are led on", "listen", v.spec.Listen, "tunnel", v.spec.Tunnel)
			err = a.serveVisits(ctx, v, ln, &guests)
		}
		if ctx.Err() != nil {
			return
		}
		if v.note(VisitFailed, describeListen(err)) {
			a.log.Warn("visits cannot be led on; it is tried again", "listen", v.spec.Listen, "tunnel", v.spec.Tunnel, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// describeListen says in one sentence why an address cannot be listened on.
func describeListen(err error) string {
	if op := new(net.OpError); errors.As(err, &op) {
		err = op.Err
	}
	return "cannot listen: " + err.Error() + "; it is tried again"
}

// serveVisits leads what comes by ln to the tunnel, until ctx ends or ln fails.
func (a *Agent) serveVisits(ctx context.Context, v *visit, ln net.Listener, guests *sync.WaitGroup) error {
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
			a.lead(ctx, v, conn.(*net.TCPConn))
		})
	}
}

// lead leads one connection to the tunnel.
func (a *Agent) lead(ctx context.Context, v *visit, conn *net.TCPConn) {
	taken := false
	err := a.visitWith(ctx, v.spec.Tunnel, func() (splice.HalfCloser, error) {
		taken = true
		v.note(VisitListening, "")
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
	if ctx.Err() == nil && v.note(VisitListening, err.Error()) { // a program may try again and again
		a.log.Warn("a visit was not led on", "tunnel", v.spec.Tunnel, "error", err)
	}
}
