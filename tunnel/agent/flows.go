package agent

import (
	"container/list"
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
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
	// maxQueued and maxQueuedBytes bound what is kept of a flow until it is known
	// at which address its origin is.
	maxQueued      = 16
	maxQueuedBytes = 128 << 10
	// refusalWait is how long after a packet a refusal of it can be expected.
	refusalWait = time.Second
	// lookAgain is how long an origin that is asked and does not answer is taken to
	// be where its name led, until the name is looked up again.
	lookAgain = 15 * time.Second
)

// flowKey names a visitor of a udp tunnel within a session.
type flowKey struct{ endpoint, number uint32 }

// flow is one visitor of a udp tunnel.
type flow struct {
	key    flowKey
	place  *list.Element // among the open ones
	seen   int64         // used, when it was last looked at for its place
	tunnel *tunnel
	route  *route
	tap    *inspect.Tap
	used   atomic.Int64 // when a packet last passed, by monotime.Now
	ended  atomic.Bool
	why    atomic.Pointer[string] // why the service does not answer; nil if it does

	withheld atomic.Bool // the relay did not pass an answer on

	origins origin.Choice // of what runs the flow
	looked  time.Time     // when its origin's name was looked up last; of the same
	out     answers

	mu     sync.Mutex
	outlet *origin.Outlet // nil while there is none
	unsure bool           // whether the origin is there: another address may be tried
	since  time.Duration  // when the first of queued was kept
	queued [][]byte       // for the outlet to come, or the next
	size   int            // of queued
}

// abort ends the flow.
func (f *flow) abort() {
	f.ended.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outlet != nil {
		_ = f.outlet.Close()
	}
}

// unheard notes that the service cannot be reached now; it may be again.
func (f *flow) unheard(a *Agent, err error) {
	why := f.route.service.Unreached(err).Error()
	f.why.Store(&why)
	a.reached(f.route, errors.New(why))
	a.complain(f.route, why)
}

// notPassed notes that the relay did not pass an answer on. It says so once.
func (f *flow) notPassed(a *Agent) {
	if !f.withheld.Swap(true) {
		a.complain(f.route, errWithheld.Error())
	}
}

// flows are the visitors of a session's udp tunnels.
type flows struct {
	live *live
	wg   sync.WaitGroup

	mu    sync.Mutex
	open  map[flowKey]*flow
	order list.List // of the open ones, in turn to be evicted
}

// receiveDatagrams serves udp visitors until the session ends.
func (l *live) receiveDatagrams(ctx context.Context) {
	fs := &flows{live: l, open: make(map[flowKey]*flow)}
	defer fs.wg.Wait()
	defer fs.abort()
	var parts wire.Reassembly
	var key flowKey
	var payloads [][]byte // of that flow, which go together
	flush := func() {
		if len(payloads) > 0 {
			fs.deliver(ctx, key, payloads)
		}
		clear(payloads)
		payloads = payloads[:0]
	}
	_ = link.ServeDatagrams(ctx, l.session, func(list [][]byte) { // it ends with the session
		for _, b := range list {
			d, err := wire.ParseFlow(b)
			if err != nil {
				l.agent.log.Debug("datagram does not parse", "error", err)
				continue
			}
			if next := (flowKey{d.Endpoint, d.Number}); next != key {
				flush()
				key = next
			}
			if d.Kind == wire.FlowClose || d.Kind == wire.FlowWithheld {
				flush()
				switch f := fs.get(key); {
				case f == nil:
				case d.Kind == wire.FlowClose:
					f.abort()
				default:
					f.notPassed(l.agent)
				}
				continue
			}
			if payload := parts.Add(d); payload != nil {
				payloads = append(payloads, payload)
			}
		}
		flush()
	})
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

// deliver hands a visitor's packets to the origin. Like the network, it drops
// what it cannot.
func (fs *flows) deliver(ctx context.Context, key flowKey, payloads [][]byte) {
	f := fs.get(key)
	if f == nil || f.ended.Load() {
		if f = fs.start(ctx, key); f == nil {
			return
		}
	}
	f.used.Store(int64(monotime.Now()))
	udpbatch.Passed(len(payloads))
	// Counted and heard before the origin can answer: nobody sees an answer
	// without its question.
	for _, payload := range payloads {
		f.tunnel.counters.in.Add(int64(len(payload)))
		fs.live.agent.in.Add(int64(len(payload)))
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
	fs.live.agent.active()
}

// start makes the flow of key; nil if there is no such tunnel.
func (fs *flows) start(ctx context.Context, key flowKey) *flow {
	t, era, _ := fs.live.find(key.endpoint)
	if t == nil {
		return nil
	}
	a, r := fs.live.agent, t.route.Load()
	if r.spec.Type != wire.TypeUDP {
		return nil
	}
	f := &flow{key: key, tunnel: t, route: r}
	f.used.Store(int64(monotime.Now()))
	if r.inspect {
		f.tap = a.inspector.Flow(inspect.Meta{TunnelID: r.id, TunnelName: r.name, Type: r.spec.Type})
	}
	fs.put(f)
	t.conns.add(f, f.route, era)
	t.counters.open.Add(1)
	t.counters.total.Add(1)
	a.active()
	fs.wg.Go(func() {
		fs.run(ctx, f)
		f.abort()
		fs.remove(f)
		t.conns.remove(f)
		t.counters.open.Add(-1)
		if f.withheld.Load() {
			f.tap.Refuse(0, errWithheld.Error())
		}
		f.tap.Close()
		a.active()
	})
	return f
}

// put makes f the flow of its key, in the place of another if there are too many.
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

// remove forgets a flow that is over.
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

// evict ends a flow that has been silent for long: the first in turn of which no
// packet has passed since it was looked at last. Those of which one has are passed
// over, once for that. fs.mu is held.
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

// run connects a flow to its origin and carries the answers, until the flow has
// been idle or was ended.
func (fs *flows) run(ctx context.Context, f *flow) {
	err := fs.resolve(ctx, f)
	for again := true; again && err == nil; {
		var o *origin.Outlet
		if o, err = fs.connect(f); err == nil {
			again = fs.carry(ctx, f, o, o)
			_ = o.Close()
		}
	}
	if err != nil {
		fs.live.agent.reached(f.route, err)
		fs.live.agent.complain(f.route, err.Error())
		f.tap.Refuse(0, err.Error())
		fs.close(f)
	}
}

// carry takes the origin's packets to the visitor, until the flow has been idle
// or was ended, or its socket can no more be read. It reports whether the origin
// is to be tried at another address.
func (fs *flows) carry(ctx context.Context, f *flow, conn readDeadliner, from originReader) (again bool) {
	heard, seen := false, f.used.Load()
	wait := flowIdle
	if f.route.service.Named() {
		wait = min(wait, fs.live.agent.lookAgain)
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
			f.unheard(fs.live.agent, err)
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
			fs.live.agent.reached(f.route, nil)
		}
		if !heard {
			fs.live.agent.reached(f.route, nil)
			heard = true
			f.answered()
		}
		err = fs.answer(f, list)
		from.Done()
		if err != nil && !fs.live.alive() {
			return false
		}
	}
}

// resolve finds the origin's addresses.
func (fs *flows) resolve(ctx context.Context, f *flow) (err error) {
	f.origins, err = fs.live.agent.origins.Choose(ctx, f.route.service, f.tunnel.heard.Load())
	f.looked = time.Now()
	return err
}

// strayed reports whether the name of the flow's origin leads elsewhere by now, and
// has the flow go there. A name that does not resolve leads where it did.
func (fs *flows) strayed(ctx context.Context, f *flow) bool {
	if !f.route.service.Named() || time.Since(f.looked) < fs.live.agent.lookAgain {
		return false
	}
	before := f.origins
	if err := fs.resolve(ctx, f); err != nil || f.origins.Has(before.Addr()) {
		f.origins = before
		return false
	}
	f.mu.Lock()
	f.outlet = nil // what the visitor sends waits
	f.mu.Unlock()
	return true
}

// connect opens a socket to the address that is to be tried, and sends what has
// waited for it.
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

// keep keeps the visitor's packets for a socket that is yet to come, as far as
// there is room. f.mu is held.
func (f *flow) keep(payloads [][]byte) {
	now := monotime.Now()
	if f.outlet != nil && len(f.queued) > 0 && now-f.since > refusalWait {
		f.settle(true) // a service that only listens
		return
	}
	if len(f.queued) == 0 {
		f.since = now
	}
	for _, payload := range payloads {
		if len(f.queued) < maxQueued && f.size+len(payload) <= maxQueuedBytes {
			f.queued = append(f.queued, append([]byte(nil), payload...))
			f.size += len(payload)
		}
	}
}

// settle notes whether the flow's socket is at the right address, as far as one
// can know: what was sent to it is then no more kept for another. f.mu is held.
func (f *flow) settle(sure bool) {
	f.unsure, f.since = !sure, monotime.Now()
	if sure {
		f.queued, f.size = nil, 0
	}
}

// answered notes that the origin is where the flow's packets go.
func (f *flow) answered() {
	if f.origins.Sole() {
		return
	}
	f.mu.Lock()
	f.settle(true)
	f.mu.Unlock()
	addr := f.origins.Addr()
	f.tunnel.heard.Store(&addr)
}

// moves reports whether the flow, which was refused, is to try another address.
// If not, what was refused is given up.
func (f *flow) moves() bool {
	move := f.origins.Next()
	f.mu.Lock()
	defer f.mu.Unlock()
	if move {
		f.outlet = nil // what the visitor sends waits
	} else {
		f.queued, f.size = nil, 0
	}
	return move
}

// answers are what a flow's origin has sent.
type answers struct {
	count   uint16
	scratch []byte
}

// answer sends what has come of a flow's origin, together.
func (fs *flows) answer(f *flow, list [][]byte) (err error) {
	a, session, out := fs.live.agent, fs.live.session, &f.out
	udpbatch.Passed(len(list))
	if len(list) > 1 {
		link.GatherDatagrams(session)
		defer link.SendGathered(session)
	}
	for _, payload := range list {
		out.count++
		// Counted before the visitor can have it, as all that reads the counters expects.
		f.tunnel.counters.out.Add(int64(len(payload)))
		a.out.Add(int64(len(payload)))
		f.tap.FromOrigin(payload)
		d := wire.Flow{Endpoint: f.key.endpoint, Number: f.key.number, Packet: out.count, Payload: payload}
		if out.scratch, err = wire.SplitFlow(out.scratch, d, session.MaxDatagram(), session.SendDatagram); err != nil {
			a.log.Debug("datagram not sent", "error", err)
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

// maxFailures is how many errors in a row the packets that waited for the
// origin's name may cause, and more.
const maxFailures = 4 * maxQueued

// streak tells an ICMP message, of which each packet sent may cause one, from
// a socket that fails at every read.
type streak struct {
	used   int64 // when a packet had last passed at the first of the errors
	errors int
}

// lasts counts an error, and reports whether so many came without a packet in
// between that no packet can be their cause.
func (s *streak) lasts(used int64) bool {
	if used != s.used {
		*s = streak{used: used}
	}
	s.errors++
	return s.errors > maxFailures
}

// close tells the relay that the flow is over.
func (fs *flows) close(f *flow) {
	d := wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowClose, Endpoint: f.key.endpoint, Number: f.key.number})
	if err := fs.live.session.SendDatagram(d); err != nil {
		fs.live.agent.log.Debug("end of a flow not told", "error", err)
	}
}
