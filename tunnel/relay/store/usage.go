package store

import (
	"context"
	"time"

	"adit/tunnel/relay/store/table"
)

// Usage is what a client's visitors moved in a month.
type Usage struct {
	ClientID string `json:"client_id"`
	Month    string `json:"month"` // 2006-01, of UTC
	In       int64  `json:"bytes_in"`
	Out      int64  `json:"bytes_out"`
	// Others are of other months, last written first: nodes do not reach a month at the
	// same moment, and a clock that is set wrong and right again must not lose the
	// month that it is.
	Others []Moved `json:"others,omitempty"`
	// Runs are how far those of nodes have been counted, last written at the end.
	Runs []Counted `json:"runs,omitempty"`
}

// Counted is how much of what a run has moved is in a client's usage,
// whatever the month.
type Counted struct {
	Run string `json:"run"`
	In  int64  `json:"bytes_in"`
	Out int64  `json:"bytes_out"`
}

// maxRuns is how many runs are kept: far more than the nodes that there are.
const maxRuns = 16

// Moved is what a client's visitors moved in a month that is not the last one
// written.
type Moved struct {
	Month string `json:"month"`
	In    int64  `json:"bytes_in"`
	Out   int64  `json:"bytes_out"`
}

// maxMonths is how many other months are kept.
const maxMonths = 3

// of is the usage of a month, with all other months as Others.
func (v Usage) of(month string) Usage {
	if v.Month == month {
		return v
	}
	next := Usage{ClientID: v.ClientID, Month: month, Runs: v.Runs}
	if v.Month != "" {
		next.Others = []Moved{{v.Month, v.In, v.Out}}
	}
	for _, m := range v.Others {
		if m.Month == month {
			next.In, next.Out = m.In, m.Out
		} else {
			next.Others = append(next.Others, m)
		}
	}
	next.Others = next.Others[:min(len(next.Others), maxMonths)]
	return next
}

// MonthOf names the month of a time.
func MonthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// Usages are of the clients that had visitors, by client id.
type Usages struct{ table *table.Table[Usage] }

// Get returns a client's usage of a month.
func (u *Usages) Get(clientID, month string) Usage {
	v, _, _ := u.table.Get(clientID)
	v.ClientID = clientID
	v = v.of(month)
	v.Others, v.Runs = nil, nil
	return v
}

// Tally is what a run, one of a node for a client, has moved since it began.
type Tally struct {
	Run     string // tells it from all others; empty: it is not kept
	In, Out int64
	// Before is how much of it is in the usage already, where the usage does not
	// say so itself.
	Before Counted
}

// Add brings a client's usage of a month up to a tally, and returns it. To do so
// twice is no more than once: a write that was not answered may be made after all.
func (u *Usages) Add(ctx context.Context, clientID, month string, t Tally) (Usage, error) {
	v, err := u.table.Change(ctx, clientID, func(v Usage, _ bool) (Usage, error) {
		v.ClientID = clientID
		v = v.of(month)
		before, runs := t.Before, make([]Counted, 0, len(v.Runs)+1)
		for _, r := range v.Runs {
			if r.Run == t.Run {
				before = r
			} else {
				runs = append(runs, r)
			}
		}
		v.In, v.Out = v.In+t.In-before.In, v.Out+t.Out-before.Out
		if t.Run != "" {
			runs = append(runs, Counted{t.Run, t.In, t.Out})
		}
		v.Runs = runs[max(0, len(runs)-maxRuns):]
		return v, nil
	})
	v.Others, v.Runs = nil, nil
	return v, err
}

// Counted is how much of a run is in a client's usage, as far as it is known.
func (u *Usages) Counted(clientID, run string) (Counted, bool) {
	v, _, _ := u.table.Get(clientID)
	for _, r := range v.Runs {
		if r.Run == run {
			return r, true
		}
	}
	return Counted{}, false
}
