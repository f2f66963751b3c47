package console

import (
	"context"
	"sync"
	"time"
)

// Counters counts all visitors of this node, including those of endpoints that were given
// back while they were served. All fields except Open only rise after the relay has
// started.
type Counters struct {
	Open    int64  // requests, connections and flows in progress
	Visits  uint64 // that have ended, allowed or refused
	Refused uint64 // by a policy
	Failed  uint64 // answered with 5xx
	Bytes   Bytes
}

// Figure describes the relay over one span of time. Rates are per second.
type Figure struct {
	At          time.Time `json:"at"` // the end of the span
	Sessions    int       `json:"sessions"`
	Endpoints   int       `json:"endpoints"`
	Connections int64     `json:"connections"` // open
	Visits      float64   `json:"visits"`
	Refused     float64   `json:"refused"`
	Failed      float64   `json:"failed"`
	BytesIn     float64   `json:"bytes_in"`
	BytesOut    float64   `json:"bytes_out"`
}

// Figures describes the relay over time, oldest first.
type Figures struct {
	Node  string   `json:"node"`
	Step  int      `json:"step_seconds"`
	Items []Figure `json:"items"`
}

// How far back the figures go: an hour in fine steps, and a day in coarse steps.
const (
	fineStep   = 10 * time.Second
	fineKept   = 360
	coarseStep = 5 * time.Minute
	coarseKept = 288
	coarseOf   = int(coarseStep / fineStep)
)

// history keeps the figures of this node.
type history struct {
	mu     sync.Mutex
	fine   []Figure
	coarse []Figure

	last     Counters
	at       time.Time
	sinceFew int // fine figures since the last coarse one
}

// sample records the figures of the span since the last sample.
func (h *history) sample(now time.Time, relay Relay) {
	counters, status := relay.Counters(), relay.Status()
	f := Figure{At: now.UTC(), Endpoints: status.Endpoints, Sessions: status.Sessions, Connections: counters.Open}
	h.mu.Lock()
	defer h.mu.Unlock()
	span := now.Sub(h.at).Seconds()
	first := h.at.IsZero() || span <= 0
	if !first {
		f.BytesIn, f.BytesOut = float64(counters.Bytes.In-h.last.Bytes.In)/span, float64(counters.Bytes.Out-h.last.Bytes.Out)/span
		f.Visits = float64(counters.Visits-h.last.Visits) / span
		f.Refused = float64(counters.Refused-h.last.Refused) / span
		f.Failed = float64(counters.Failed-h.last.Failed) / span
	}
	h.last, h.at = counters, now
	if first {
		return
	}
	h.fine = kept(append(h.fine, f), fineKept)
	if h.sinceFew++; h.sinceFew >= coarseOf {
		h.coarse = kept(append(h.coarse, mean(h.fine[len(h.fine)-min(len(h.fine), coarseOf):])), coarseKept)
		h.sinceFew = 0
	}
}

func kept(list []Figure, n int) []Figure {
	if len(list) > n {
		return append([]Figure(nil), list[len(list)-n:]...)
	}
	return list
}

// mean returns the figure for several spans of equal length.
func mean(list []Figure) Figure {
	m := list[len(list)-1]
	m.Visits, m.Refused, m.Failed, m.BytesIn, m.BytesOut = 0, 0, 0, 0, 0
	n := float64(len(list))
	for _, f := range list {
		m.Visits += f.Visits / n
		m.Refused += f.Refused / n
		m.Failed += f.Failed / n
		m.BytesIn += f.BytesIn / n
		m.BytesOut += f.BytesOut / n
	}
	return m
}

func (h *history) figures(day bool) Figures {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := Figures{Step: int(fineStep.Seconds()), Items: append([]Figure{}, h.fine...)}
	if day {
		f.Step, f.Items = int(coarseStep.Seconds()), append([]Figure{}, h.coarse...)
	}
	return f
}

// Run samples the relay's figures until ctx ends.
func (c *Console) Run(ctx context.Context) error {
	c.history.sample(time.Now(), c.cfg.Relay)
	tick := time.NewTicker(fineStep)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.history.sample(now, c.cfg.Relay)
		case <-ctx.Done():
			return nil
		}
	}
}
