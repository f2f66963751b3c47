// Package alerts detects what an operator wants to know about clients: that one is away,
// that one is back, and what agents report about their side. The caller decides whom to
// alert, and whether anyone wants to be alerted.
package alerts

import (
	"cmp"
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"adit/tunnel/relay/sink"
)

const (
	grace     = time.Minute
	lookEvery = 5 * time.Second
	// Of what a client reports so much is told at once, and one each gap after.
	reports   = 20
	reportGap = 10 * time.Second
)

// Client is one that may have agents.
type Client struct {
	ID, Name  string
	Connected bool // somewhere, now
	// Seen is when it was last seen before this relay began, SeenThere whether it was
	// connected and nobody saw it leave. A zero Seen: never.
	Seen      time.Time
	SeenThere bool
}

// Config is what a Watch is made of.
type Config struct {
	// Clients is all that may have agents.
	Clients func() []Client
	// First reports whether this node is the one of the relay's that tells who comes
	// and goes. The others watch, and one takes its place.
	First func() bool
	// Grace is how long a client may have no agent before it counts as away: agents
	// that begin anew or move to another network are back within it. If zero, a minute.
	Grace time.Duration
	// Tell takes what is found out, and does not wait.
	Tell func(sink.Client)
}

// Watch knows who is there. Its Run must be running.
type Watch struct {
	cfg   Config
	known map[string]*attendance // by client id; Run's alone

	mu       sync.Mutex
	reported map[string]*rate.Limiter // by client id
}

// attendance is what was said of a client, and what is so.
type attendance struct {
	there bool
	lost  time.Time // when it was found to have no agent; zero: it has one, or is said to be away
}

// New returns a Watch.
func New(c Config) *Watch {
	c.Grace = cmp.Or(c.Grace, grace)
	return &Watch{cfg: c}
}

// Run looks after the clients until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	w.begin(time.Now())
	tick := time.NewTicker(min(lookEvery, w.cfg.Grace/4))
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			w.look(now)
		case <-ctx.Done():
			return
		}
	}
}

// begin takes those for present that were when the relay was last there: when one ends,
// all are seen for the last time, and of who left less than a grace before nobody was
// told. If they do not come back, that is news.
func (w *Watch) begin(now time.Time) {
	list := w.cfg.Clients()
	var newest time.Time
	for _, c := range list {
		if c.Seen.After(newest) {
			newest = c.Seen
		}
	}
	w.known = make(map[string]*attendance, len(list))
	for _, c := range list {
		a := &attendance{there: c.Connected || c.SeenThere || !c.Seen.IsZero() && newest.Sub(c.Seen) < w.cfg.Grace}
		if a.there && !c.Connected {
			a.lost = now
		}
		w.known[c.ID] = a
	}
}

func (w *Watch) look(now time.Time) {
	first, list := w.cfg.First(), w.cfg.Clients()
	here := make(map[string]*attendance, len(list))
	for _, c := range list {
		a := w.known[c.ID]
		if a == nil {
			a = &attendance{}
		}
		here[c.ID] = a
		switch {
		case c.Connected && !a.there:
			a.there = true
			w.tell(first, sink.Client{Time: now.UTC(), State: sink.Connected, Client: c.Name, ClientID: c.ID})
		case c.Connected:
			a.lost = time.Time{}
		case a.there && a.lost.IsZero():
			a.lost = now
		case a.there && now.Sub(a.lost) >= w.cfg.Grace:
			since := a.lost.UTC()
			a.there, a.lost = false, time.Time{}
			w.tell(first, sink.Client{Time: now.UTC(), State: sink.Away, Client: c.Name, ClientID: c.ID, Since: &since})
		}
	}
	w.known = here // who was revoked is forgotten: the audit log tells of that
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.reported {
		if here[id] == nil {
			delete(w.reported, id)
		}
	}
}

func (w *Watch) tell(first bool, c sink.Client) {
	if first {
		w.cfg.Tell(c)
	}
}

// Reported tells what an agent of a client reported here, as far as the client has not
// reported too much.
func (w *Watch) Reported(list ...sink.Client) {
	for _, c := range list {
		w.mu.Lock()
		if w.reported == nil {
			w.reported = make(map[string]*rate.Limiter)
		}
		if w.reported[c.ClientID] == nil {
			w.reported[c.ClientID] = rate.NewLimiter(rate.Every(reportGap), reports)
		}
		ok := w.reported[c.ClientID].Allow()
		w.mu.Unlock()
		if ok {
			w.cfg.Tell(c)
		}
	}
}
