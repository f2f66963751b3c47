// Package sink sends access events, audit entries and news of clients on to an operator's own
// systems: as signed webhooks, or as syslog. What cannot be sent waits in a
// bounded queue and is tried again with back-off; a visitor never waits for it.
package sink

import (
	"context"
	crand "crypto/rand"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	maxQueue   = 10_000
	maxBatch   = 500
	maxBytes   = 1 << 20     // of a batch, unless one event is larger: what web servers take by themselves
	gather     = time.Second // for a batch to fill
	sendTime   = 15 * time.Second
	firstPause = time.Second
	lastPause  = time.Minute
	maxTries   = 12
	lastWords  = 3 * time.Second // to send what waits at the end
)

// State is how a sink fares since it began.
type State struct {
	Sent, Failed, Dropped uint64
	Queued                int
	LastError             string
	LastErrorAt           time.Time
	LastSentAt            time.Time
}

// permanent is an error that another try would not mend.
type permanent struct{ error }

// sender takes a batch to where it goes. The id is the batch's, at each try.
type sender interface {
	send(ctx context.Context, id string, batch []Event) error
	close()
}

// setup is a configuration at work.
type setup struct {
	cfg      Config
	sender   sender
	replaced chan struct{} // closed when another has taken its place
}

func (s *setup) isReplaced() bool {
	select {
	case <-s.replaced:
		return true
	default:
		return false
	}
}

// Sink queues events and sends them. Its Run must be running.
type Sink struct {
	opts    Options       // but its Config
	pause   time.Duration // before the second try
	arrived chan struct{} // there is something to look at; room for one
	used    *setup        // Run's: the one it took last, whose connections may be open

	mu     sync.Mutex
	setup  *setup
	queue  []Event
	trying int // events that are off the queue, and neither taken nor given up
	state  State
}

// Options are what a sink is made of.
type Options struct {
	Name    string
	Node    string
	Config  Config // checked
	Private bool   // private addresses may be reached
	Log     *slog.Logger
}

// New returns a sink; nothing is sent until it is run.
func New(o Options) *Sink {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Sink{opts: o, pause: firstPause, arrived: make(chan struct{}, 1), setup: newSetup(o)}
}

func newSetup(o Options) *setup {
	now := &setup{cfg: o.Config, replaced: make(chan struct{})}
	if o.Config.Type == Syslog {
		now.sender = newSyslog(o)
	} else {
		now.sender = newWebhook(o)
	}
	return now
}

// Set replaces the configuration by another that was checked. What waits is sent
// as that says, as far as it wants it; while it is not enabled all of it waits.
func (s *Sink) Set(c Config) {
	o := s.opts
	o.Config = c
	next := newSetup(o)
	s.mu.Lock()
	old := s.setup
	s.setup = next
	s.state.LastError, s.state.LastErrorAt = "", time.Time{} // it was the old one's
	s.mu.Unlock()
	close(old.replaced)
	s.look()
}

// look has Run look at the queue.
func (s *Sink) look() {
	select {
	case s.arrived <- struct{}{}:
	default:
	}
}

// Add queues an event, if the sink wants it. It never waits: where the queue is
// full the oldest are dropped, those of visitors first.
func (s *Sink) Add(e Event) {
	s.mu.Lock()
	if c := s.setup.cfg; !c.On() || !c.wants(e) {
		s.mu.Unlock()
		return
	}
	if len(s.queue) >= maxQueue {
		s.queue = thinned(s.queue, maxQueue/10)
		s.state.Dropped += maxQueue / 10
	}
	s.queue = append(s.queue, e)
	s.mu.Unlock()
	s.look()
}

// thinned is a queue without so many of its oldest: of access events, as far as there are
// any. Strangers make as many of those as they like, and would hide what else happens.
func thinned(queue []Event, less int) []Event {
	kept := make([]Event, 0, len(queue))
	for _, e := range queue {
		if less > 0 && e.Access != nil {
			less--
			continue
		}
		kept = append(kept, e)
	}
	return kept[less:]
}

// State returns how the sink fares.
func (s *Sink) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.state
	st.Queued = len(s.queue) + s.trying
	return st
}

// Test sends one event now, beside the queue.
func (s *Sink) Test(ctx context.Context, e Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	return s.now().sender.send(ctx, crand.Text(), []Event{e})
}

// Close gives back what Test used, of a sink that is not run.
func (s *Sink) Close() { s.now().sender.close() }

func (s *Sink) now() *setup {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.setup
}

// Run sends what is queued until ctx ends, and then for a moment what is left.
func (s *Sink) Run(ctx context.Context) error {
	defer s.Close()
	for {
		select {
		case <-s.arrived:
		case <-ctx.Done():
			return s.finish(s.take())
		}
		full := time.NewTimer(gather)
		select {
		case <-full.C:
		case <-ctx.Done():
			full.Stop()
			return s.finish(s.take())
		}
		for now, id, batch := s.take(); len(batch) > 0; now, id, batch = s.take() {
			left := s.deliver(ctx, now, id, batch)
			switch {
			case left:
				return s.finish(now, id, batch)
			case ctx.Err() != nil:
				return s.finish(s.take())
			}
		}
	}
}

// take takes a batch off the queue, with an id of its own, and the setup to send it
// with. There is none while the sink is not enabled.
func (s *Sink) take() (now *setup, id string, batch []Event) {
	s.mu.Lock()
	now = s.setup
	for now.cfg.On() && len(s.queue) > 0 && len(batch) == 0 {
		n := batchOf(s.queue)
		// Another setup may have wanted what this one does not.
		batch = slices.DeleteFunc(s.queue[:n:n], func(e Event) bool { return !now.cfg.wants(e) })
		s.queue = s.queue[n:]
	}
	s.trying = len(batch)
	s.mu.Unlock()
	if s.used != nil && s.used != now {
		s.used.sender.close() // here, for it waits for what is under way
	}
	s.used = now
	return now, crand.Text(), batch
}

func (s *Sink) putBack(batch []Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.trying = append(slices.Clone(batch), s.queue...), 0
}

// deliver tries a batch until it is taken or given up. If another setup takes this
// one's place first, it goes back into the queue. left reports that ctx has ended
// before: the receiver may have it and not have answered yet.
func (s *Sink) deliver(ctx context.Context, now *setup, id string, batch []Event) (left bool) {
	pause := s.pause
	for try := 1; ; try++ {
		err := s.once(ctx, now, id, batch)
		if err == nil {
			return false
		}
		var p permanent
		final := errors.As(err, &p) || try == maxTries
		if final {
			pause = 0
		}
		wait := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-wait.C:
		case <-ctx.Done():
		case <-now.replaced:
		}
		wait.Stop()
		switch {
		case now.isReplaced():
			s.putBack(batch)
			return false
		case ctx.Err() != nil:
			return true
		case final:
			s.drop(false, err)
			return false
		}
		pause = min(pause*2, lastPause)
	}
}

func (s *Sink) once(ctx context.Context, now *setup, id string, batch []Event) error {
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	err := now.sender.send(ctx, id, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Now().UTC()
	if err != nil {
		s.state.Failed++
		if now == s.setup {
			s.state.LastError, s.state.LastErrorAt = err.Error(), at
		}
		return err
	}
	s.state.Sent += uint64(len(batch))
	s.trying = 0
	s.state.LastSentAt = at
	return nil
}

// finish tries once what is left: a batch, and what waits behind it.
func (s *Sink) finish(now *setup, id string, batch []Event) error {
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	for ; len(batch) > 0; now, id, batch = s.take() {
		if err := s.once(ctx, now, id, batch); err != nil {
			s.drop(true, err)
		}
	}
	return nil
}

// drop gives up the batch that was tried, and with all what waits behind it, too.
func (s *Sink) drop(all bool, err error) {
	s.mu.Lock()
	count := s.trying
	if s.trying = 0; all {
		count += len(s.queue)
		s.queue = nil
	}
	s.state.Dropped += uint64(count)
	s.mu.Unlock()
	s.opts.Log.Warn("sink did not take events; they are dropped", "sink", s.opts.Name, "count", count, "error", err)
}
