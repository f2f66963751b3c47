package forward

import (
	"container/list"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"adit/internal/monotime"
	"adit/internal/udpbatch"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

const (
	maxFlows = 4096 // of one session
	flowIdle = 90 * time.Second
)

// flows are the visitors of a session's udp tunnels.
type flows struct {
	*Forwarder
	session link.Session
	numbers *numbers
	past    wire.Past[flowKey] // of who receives
	wg      sync.WaitGroup

	mu    sync.Mutex
	open  map[flowKey]*flow
	order list.List // of the open ones, in turn to be evicted
}

// receiveDatagrams serves udp visitors until the session ends.
func (s *Session) receiveDatagrams(ctx context.Context) {
	fs := &flows{Forwarder: s.by, session: s.session, numbers: &s.numbers, open: make(map[flowKey]*flow)}
	defer fs.wg.Wait()
	defer fs.abort()
	var parts wire.Reassembly
	var key flowKey
	var payloads [][]byte // of that flow, which go together
	flush := func() {
		switch {
		case len(payloads) == 0:
		case key.endpoint == wire.EndpointVisits:
			s.own.Bring(key.number, payloads)
		default:
			fs.deliver(ctx, key, payloads)
		}
		clear(payloads)
		payloads = payloads[:0]
	}
	_ = link.ServeDatagrams(ctx, s.session, func(list [][]byte) { // it ends with the session
		for _, b := range list {
			d, err := wire.ParseFlow(b)
			if err != nil {
				s.by.log.Debug("datagram does not parse", "error", err)
				continue
			}
			if next := (flowKey{d.Endpoint, d.Number}); next != key {
				flush()
				key = next
			}
			if d.Kind == wire.FlowClose || d.Kind == wire.FlowWithheld || d.Kind == wire.FlowFrom {
				flush()
				fs.told(ctx, key, d)
				continue
			}
			if payload := parts.Add(d); payload != nil {
				payloads = append(payloads, payload)
			}
		}
		flush()
	})
}

// told handles a message of the relay about a flow.
func (fs *flows) told(ctx context.Context, key flowKey, d wire.Flow) {
	if d.Kind == wire.FlowClose {
		fs.past.Add(key)
	}
	f := fs.get(key)
	switch {
	case d.Kind == wire.FlowFrom:
		who, err := wire.ParseFrom(d.Payload)
		if err == nil && (f == nil || f.ended.Load()) { // else a packet was faster
			fs.start(ctx, key, who)
		}
	case f == nil:
	case d.Kind == wire.FlowClose:
		f.abort()
	default:
		f.notPassed(fs.Forwarder)
	}
}

func (fs *flows) get(key flowKey) *flow {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.open[key]
}

func (fs *flows) abort() {
	fs.mu.Lock()
	list := make([]*flow, 0, len(fs.open))
	for _, f := range fs.open {
		list = append(list, f)
	}
	fs.mu.Unlock()
	for _, f := range list {
		f.abort()
	}
}

// deliver passes a visitor's packets to the origin. Like the network, it drops what it cannot
// deliver.
func (fs *flows) deliver(ctx context.Context, key flowKey, payloads [][]byte) {
	f := fs.get(key)
	if f == nil || f.ended.Load() {
		if f = fs.start(ctx, key, wire.From{}); f == nil {
			return
		}
	}
	f.used.Store(int64(monotime.Now()))
	udpbatch.Passed(len(payloads))
	// Count and show them before the origin can answer, so that nobody sees an answer without its
	// question.
	for _, payload := range payloads {
		f.tunnel.counters.In(len(payload))
		fs.passed.In(len(payload))
		f.tap.FromVisitor(payload)
	}
	f.mu.Lock()
	o := f.outlet
	if o == nil || f.unsure {
		f.keep(payloads)
	}
	f.mu.Unlock()
	if o != nil {
		fs.write(f, o, payloads)
	}
}

func (fs *flows) write(f *flow, o *origin.Outlet, payloads [][]byte) {
	if err := o.WriteBatch(payloads, udpbatch.Addr{}); err != nil {
		if !errors.Is(err, net.ErrClosed) {
			o.Lost(err)
		}
		return
	}
	fs.active()
}

// start creates the flow for key, whose visitor may be unknown; nil if there is no such tunnel, or
// if the relay has ended the flow.
func (fs *flows) start(ctx context.Context, key flowKey, who wire.From) *flow {
	if fs.past.Has(key) {
		return nil
	}
	t, era, _ := fs.numbers.find(key.endpoint)
	if t == nil {
		return nil
	}
	r := t.route.Load()
	if r.spec.Type != wire.TypeUDP {
		return nil
	}
	f := &flow{key: key, tunnel: t, route: r}
	ctx, f.cancel = context.WithCancel(ctx)
	f.used.Store(int64(monotime.Now()))
	if r.inspect {
		meta := inspect.Meta{TunnelID: r.id, TunnelName: r.name, Type: r.spec.Type, Client: who.Client}
		if who.Visitor.IsValid() {
			meta.Visitor = who.Visitor.String()
		}
		f.tap = fs.inspector.Flow(meta)
	}
	fs.put(f)
	t.conns.add(f, f.route, era)
	t.counters.Enter()
	fs.active()
	fs.wg.Go(func() {
		fs.run(ctx, f)
		f.abort()
		fs.remove(f)
		t.conns.remove(f)
		t.counters.Leave()
		if f.withheld.Load() {
			f.tap.Refuse(0, errWithheld.Error())
		}
		f.tap.Close()
		fs.active()
	})
	return f
}

// over reports whether the session has ended.
func (fs *flows) over() bool {
	select {
	case <-fs.session.Done():
		return true
	default:
		return false
	}
}

// put makes f the flow for its key, and removes another if there are too many.
func (fs *flows) put(f *flow) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if before := fs.open[f.key]; before != nil {
		fs.dropLocked(before)
	}
	if len(fs.open) >= maxFlows {
		fs.evict()
	}
	fs.open[f.key] = f
	f.seen, f.place = f.used.Load(), fs.order.PushBack(f)
}

// remove forgets a flow that has ended.
func (fs *flows) remove(f *flow) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.open[f.key] == f {
		fs.dropLocked(f)
	}
}

func (fs *flows) dropLocked(f *flow) {
	delete(fs.open, f.key)
	fs.order.Remove(f.place)
}

// evict ends a flow that has been silent for long: the first in turn through which no packet has
// passed since it was last examined. Flows through which one has passed go to the end of the queue.
// fs.mu is held.
func (fs *flows) evict() {
	for range fs.order.Len() {
		f := fs.order.Front().Value.(*flow)
		used := f.used.Load()
		if used == f.seen {
			break
		}
		f.seen = used
		fs.order.MoveToBack(f.place)
	}
	f := fs.order.Front().Value.(*flow)
	fs.dropLocked(f)
	f.abort()
}

// run connects a flow to its origin and carries the answers until the flow has been idle or was
// ended.
func (fs *flows) run(ctx context.Context, f *flow) {
	var err error
	f.origins, err = fs.origins.Choose(ctx, f.route.service, f.tunnel.heard.Load())
	for again := true; again && err == nil; {
		var o *origin.Outlet
		if o, err = fs.connect(f); err == nil {
			again = fs.carry(ctx, f, o, o)
			_ = o.Close()
		}
	}
	if err != nil && !f.ended.Load() {
		fs.reached(f.route, err)
		fs.trouble(f.route, err.Error())
		f.tap.Refuse(0, err.Error())
		fs.close(f)
	}
}

// carry passes the origin's packets to the visitor until the flow has been idle or was ended, or
// its socket can no longer be read. It reports whether to try the origin at another address.
func (fs *flows) carry(ctx context.Context, f *flow, conn readDeadliner, from originReader) (again bool) {
	heard, seen := false, f.used.Load()
	wait := flowIdle
	if f.route.service.Named() {
		wait = min(wait, fs.origins.LookAgain)
	}
	var failing streak
	defer from.Done()
	defer func() {
		if why := f.why.Load(); why != nil && !again {
			f.tap.Refuse(0, *why)
		}
	}()
	_ = conn.SetReadDeadline(time.Now().Add(wait))
	for {
		list, err := from.Read()
		switch {
		case f.ended.Load() || errors.Is(err, net.ErrClosed):
			return false
		case errors.Is(err, os.ErrDeadlineExceeded):
			used := f.used.Load()
			end := monotime.At(time.Duration(used)).Add(flowIdle)
			if !end.After(time.Now()) {
				fs.close(f)
				return false
			}
			if used != seen && fs.strayed(ctx, f) { // asked, and not answered since
				return true
			}
			seen = used
			if next := time.Now().Add(wait); next.Before(end) {
				end = next
			}
			_ = conn.SetReadDeadline(end)
			continue
		case err != nil: // an ICMP message: the service may come later
			if f.moves() || fs.strayed(ctx, f) {
				return true
			}
			f.unheard(fs.Forwarder, err)
			if failing.lasts(f.used.Load()) {
				fs.close(f) // the visitor's next packet begins another, with a new socket
				return false
			}
			continue
		}
		seen = int64(monotime.Now())
		f.used.Store(seen)
		if f.why.Load() != nil {
			f.why.Store(nil)
			fs.reached(f.route, nil)
		}
		if !heard {
			fs.reached(f.route, nil)
			heard = true
			f.answered()
		}
		err = fs.answer(f, list)
		from.Done()
		if err != nil && fs.over() {
			return false
		}
	}
}

// strayed reports whether the name of the flow's origin now leads elsewhere, and redirects the flow
// there.
func (fs *flows) strayed(ctx context.Context, f *flow) bool {
	if !fs.origins.Follow(ctx, &f.origins, f.tunnel.heard.Load()) {
		return false
	}
	f.mu.Lock()
	f.outlet = nil // what the visitor sends waits
	f.mu.Unlock()
	return true
}

// connect opens a socket to the address to try, and sends what has waited for it.
func (fs *flows) connect(f *flow) (*origin.Outlet, error) {
	o, err := f.origins.Open()
	if err != nil {
		return nil, err
	}
	for sent := 0; ; {
		f.mu.Lock()
		queued := f.queued[sent:]
		if len(queued) == 0 {
			f.outlet = o
			f.settle(f.origins.Sole())
		}
		f.mu.Unlock()
		if len(queued) == 0 {
			break
		}
		fs.write(f, o, queued)
		sent += len(queued)
	}
	if f.ended.Load() {
		_ = o.Close()
	}
	return o, nil
}

// answer sends what has arrived from a flow's origin, together.
func (fs *flows) answer(f *flow, list [][]byte) (err error) {
	session, out := fs.session, &f.out
	udpbatch.Passed(len(list))
	if len(list) > 1 {
		link.GatherDatagrams(session)
		defer link.SendGathered(session)
	}
	for _, payload := range list {
		out.count++
		// Count it before the visitor can receive it, as everything that reads the counters
		// expects.
		f.tunnel.counters.Out(len(payload))
		fs.passed.Out(len(payload))
		f.tap.FromOrigin(payload)
		d := wire.Flow{Endpoint: f.key.endpoint, Number: f.key.number, Packet: out.count, Payload: payload}
		if out.scratch, err = wire.SplitFlow(out.scratch, d, session.MaxDatagram(), session.SendDatagram); err != nil {
			fs.log.Debug("datagram not sent", "error", err)
		}
	}
	return err
}

// originReader is an udpbatch.LentReader.
type originReader interface {
	Read() ([][]byte, error)
	Done()
}

type readDeadliner interface{ SetReadDeadline(time.Time) error }

// close tells the relay that the flow is over.
func (fs *flows) close(f *flow) {
	d := wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: f.key.endpoint, Number: f.key.number})
	if err := fs.session.SendDatagram(d); err != nil {
		fs.log.Debug("end of a flow not told", "error", err)
	}
}
