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
	// A client's first reports are passed on immediately, and after that one per gap.
	reports   = 20
	reportGap = 10 * time.Second
)

// Client is a client that may have agents.
type Client struct {
	ID, Name  string
	Connected bool // to any node, now
	// Seen is when the client was last seen before this relay started; zero: never.
	// SeenThere says whether it was connected then and nobody saw it leave.
	Seen      time.Time
	SeenThere bool
}

// Config contains what a Watch needs.
type Config struct {
	// Clients returns all clients that may have agents.
	Clients func() []Client
	// First reports whether this node is the one that reports clients' coming and going.
	// The others keep watch, and one of them takes over if necessary.
	First func() bool
	// Grace is how long a client may have no agent before it counts as away. Agents that
	// restart or change networks are back within that time. If zero, a minute.
	Grace time.Duration
	// Tell receives what was detected. It must not wait.
	Tell func(sink.Client)
}

// Watch tracks which clients are present. Its Run must be running.
type Watch struct {
	cfg   Config
	known map[string]*attendance // by client id; used only by Run

	mu       sync.Mutex
	reported map[string]*rate.Limiter // by client id
}

// attendance is what was last reported about a client, and what is true now.
type attendance struct {
	there bool
	lost  time.Time // when it was found to have no agent; zero: it has one, or is reported as away
}

// New returns a Watch.
func New(c Config) *Watch {
	c.Grace = cmp.Or(c.Grace, grace)
	return &Watch{cfg: c}
}

// Run watches the clients until ctx ends.
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

// begin treats clients as present that were present when the relay last ran. When a relay
// ends, all clients are seen for the last time at about the same moment, and clients that
// left less than a grace period earlier had not been reported. If they do not come back,
// that is news.
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
	w.known = here // revoked clients are forgotten; the audit log records them
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

// Reported passes on what a client's agent reported here, unless the client has reported
// too much.
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
