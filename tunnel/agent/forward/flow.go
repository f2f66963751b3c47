package forward

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
)

const (
	// maxQueued and maxQueuedBytes limit what is kept of a flow until the address of its origin is
	// known.
	maxQueued      = 16
	maxQueuedBytes = 128 << 10
	// refusalWait is how long after a packet its refusal may still arrive.
	refusalWait = time.Second
)

// errWithheld is why a visitor of a udp tunnel did not get all answers.
var errWithheld = errors.New("an answer was dropped: it is too long for a visitor whose address may be forged; the relay's operator can allow more with udp_amplification")

// flowKey identifies a visitor of a udp tunnel within a session.
type flowKey struct{ endpoint, number uint32 }

// flow is one visitor of a udp tunnel.
type flow struct {
	key    flowKey
	place  *list.Element // among the open ones
	seen   int64         // used, when it was last looked at for its place
	tunnel *Tunnel
	route  *route
	tap    *inspect.Tap
	used   atomic.Int64 // when a packet last passed, by monotime.Now
	ended  atomic.Bool
	cancel context.CancelFunc     // ends what finds the origin; may be nil
	why    atomic.Pointer[string] // why the service does not answer; nil if it does

	withheld atomic.Bool // the relay did not pass an answer on

	origins origin.Choice // of what runs the flow
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
	if f.cancel != nil {
		f.cancel()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outlet != nil {
		_ = f.outlet.Close()
	}
}

// unheard records that the service cannot be reached now; it may be reachable again later.
func (f *flow) unheard(by *Forwarder, err error) {
	why := f.route.service.Unreached(err).Error()
	f.why.Store(&why)
	by.reached(f.route, errors.New(why))
	by.trouble(f.route, why)
}

// notPassed records that the relay did not pass an answer on. It reports this once.
func (f *flow) notPassed(by *Forwarder) {
	if !f.withheld.Swap(true) {
		by.trouble(f.route, errWithheld.Error())
	}
}

// keep stores the visitor's packets for a socket that does not exist yet, as far as there is room.
// f.mu is held.
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

// settle records whether the flow's socket is at the right address, as far as this can be known:
// what was sent to it is then no longer kept for another. f.mu is held.
func (f *flow) settle(sure bool) {
	f.unsure, f.since = !sure, monotime.Now()
	if sure {
		f.queued, f.size = nil, 0
	}
}

// answered records that the origin is where the flow's packets go.
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

// moves reports whether the flow, which was refused, should try another address. If not, what was
// refused is dropped.
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

// answers are packets that a flow's origin has sent.
type answers struct {
	count   uint16
	scratch []byte
}

// maxFailures is more errors in a row than the packets that waited for the origin's name can cause.
const maxFailures = 4 * maxQueued

// streak distinguishes ICMP messages, of which each packet sent may cause one, from a socket that
// fails at every read.
type streak struct {
	used   int64 // when a packet had last passed at the first of the errors
	errors int
}

// lasts counts an error, and reports whether there were so many without a packet in between that
// packets cannot be their cause.
func (s *streak) lasts(used int64) bool {
	if used != s.used {
		*s = streak{used: used}
	}
	s.errors++
	return s.errors > maxFailures
}
