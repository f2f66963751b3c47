package store

import (
	"context"
	"time"

	"adit/tunnel/relay/store/table"
)

// Usage is the traffic of a client's visitors in one month.
type Usage struct {
	ClientID string `json:"client_id"`
	Month    string `json:"month"` // 2006-01, in UTC
	In       int64  `json:"bytes_in"`
	Out      int64  `json:"bytes_out"`
	// Others are other months, most recently written first. Nodes do not reach a new month at
	// the same moment, and a clock that is wrong for a while must not cause the current month
	// to be lost.
	Others []Moved `json:"others,omitempty"`
	// Runs says how far the nodes' runs have been counted, most recently written last.
	Runs []Counted `json:"runs,omitempty"`
}

// Counted is how much of the traffic of one run is included in a client's usage, in whatever
// month.
type Counted struct {
	Run string `json:"run"`
	In  int64  `json:"bytes_in"`
	Out int64  `json:"bytes_out"`
}

// maxRuns is how many runs are remembered, which is far more than there are nodes.
const maxRuns = 16

// Moved is the traffic of a client's visitors in a month other than the one last written.
type Moved struct {
	Month string `json:"month"`
	In    int64  `json:"bytes_in"`
	Out   int64  `json:"bytes_out"`
}

// maxMonths is how many other months are kept.
const maxMonths = 3

// of returns the usage of a month, with all other months in Others.
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

// MonthOf returns the name of the month of a time.
func MonthOf(t time.Time) string { return t.UTC().Format("2006-01") }

// Usages holds the usage of every client that has had visitors, by client ID.
type Usages struct{ table *table.Table[Usage] }

// Get returns a client's usage in a month.
func (u *Usages) Get(clientID, month string) Usage {
	v, _, _ := u.table.Get(clientID)
	v.ClientID = clientID
	v = v.of(month)
	v.Others, v.Runs = nil, nil
	return v
}

// Tally is the traffic that a run has counted since it began. A run belongs to one node and
// one client.
type Tally struct {
	Run     string // identifies the run; empty: it is not remembered
	In, Out int64
	// Before is how much of the tally was already included in the usage, for a usage that does
	// not itself say so.
	Before Counted
}

// Add updates a client's usage in a month with a tally, and returns the usage. Adding a tally
// twice has no further effect, since a write without an answer may have been made.
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

// Counted returns how much of a run is included in a client's usage, if that is known.
func (u *Usages) Counted(clientID, run string) (Counted, bool) {
	v, _, _ := u.table.Get(clientID)
	for _, r := range v.Runs {
		if r.Run == run {
			return r, true
		}
	}
	return Counted{}, false
}
