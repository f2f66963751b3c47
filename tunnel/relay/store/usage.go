package store

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"adit/tunnel/relay/store/bucket"
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

// Seen is where a client's agent was last seen.
type Seen struct {
	At        time.Time `json:"at"`
	Connected bool      `json:"connected"` // then, to Node
	Node      string    `json:"node"`
	Address   string    `json:"address"`
	Transport string    `json:"transport"`
	Version   string    `json:"version"`
	OS        string    `json:"os"`
	Arch      string    `json:"arch"`
	Hostname  string    `json:"hostname,omitempty"`
	Instance  string    `json:"instance"`
}

// ClientError is something that an agent reported.
type ClientError struct {
	Time    time.Time `json:"time"`
	Key     string    `json:"key,omitempty"`
	Message string    `json:"message"`
	Node    string    `json:"node"`
}

// Equal reports whether both are the same report.
func (e ClientError) Equal(o ClientError) bool {
	return e.Time.Equal(o.Time) && e.Key == o.Key && e.Message == o.Message && e.Node == o.Node
}

// Activity is what is known of a client's agents when they are away, too.
type Activity struct {
	ClientID string        `json:"client_id"`
	Seen     Seen          `json:"seen"`
	Errors   []ClientError `json:"errors,omitempty"` // oldest first
}

// MaxErrors is how many errors of a client are kept.
const MaxErrors = 50

// Activities are of the clients that ever connected, by client id.
type Activities struct{ table *table.Table[Activity] }

// Get returns a client's activity.
func (a *Activities) Get(clientID string) (Activity, bool) {
	v, _, ok := a.table.Get(clientID)
	return v, ok
}

// aheadOf is how far a node's clock may be ahead of another's.
const aheadOf = time.Hour

// Note keeps where an agent was seen, unless something newer is known, and adds
// to its errors. What is known from the future was written by a clock that was
// wrong.
func (a *Activities) Note(ctx context.Context, clientID string, seen Seen, errs []ClientError) error {
	_, err := a.table.Change(ctx, clientID, func(v Activity, _ bool) (Activity, error) {
		v.ClientID = clientID
		if !seen.At.Before(v.Seen.At) || v.Seen.At.After(time.Now().Add(aheadOf)) {
			v.Seen = seen
		}
		// A write that was cut off may have come through: nothing is kept twice.
		fresh := slices.DeleteFunc(slices.Clone(errs), func(e ClientError) bool {
			return slices.ContainsFunc(v.Errors, e.Equal)
		})
		if len(fresh) > 0 {
			v.Errors = append(slices.Clone(v.Errors), fresh...)
			slices.SortStableFunc(v.Errors, func(a, b ClientError) int { return a.Time.Compare(b.Time) })
			v.Errors = v.Errors[max(0, len(v.Errors)-MaxErrors):]
		}
		return v, nil
	})
	return err
}

// Kept returns the ids of the clients of which there is usage, activity or a
// proof, in no order.
func (s *Store) Kept() []string {
	ids := make(map[string]bool)
	s.Usages.table.Each(func(id string, _ Usage) bool { ids[id] = true; return true })
	s.Activities.table.Each(func(id string, _ Activity) bool { ids[id] = true; return true })
	s.Proofs.table.Each(func(_ string, p Proof) bool { ids[p.ClientID] = true; return true })
	return slices.Collect(maps.Keys(ids))
}

// Forget removes usage, activity and proofs of a client.
func (s *Store) Forget(ctx context.Context, clientID string) error {
	err := errors.Join(absent(s.Usages.table.Drop(ctx, clientID)), absent(s.Activities.table.Drop(ctx, clientID)))
	for _, p := range s.Proofs.List() {
		if p.ClientID == clientID {
			err = errors.Join(err, s.Proofs.Delete(ctx, p.Domain))
		}
	}
	return err
}

// absent takes what was not there for removed.
func absent(err error) error {
	if errors.Is(err, bucket.ErrNotFound) {
		return nil
	}
	return err
}
