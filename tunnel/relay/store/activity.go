package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"adit/tunnel/relay/store/table"
)

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

const (
	// MaxErrors is how many errors of a client are kept.
	MaxErrors = 50
	// maxErrorBytes is how long they may be as JSON, together: a value has room for
	// twice as much.
	maxErrorBytes = 128 << 10
)

// newest are those of errs that are kept.
func newest(errs []ClientError) []ClientError {
	first, size := len(errs), 0
	for first > max(0, len(errs)-MaxErrors) {
		text, _ := json.Marshal(errs[first-1]) // what JSON does not have is the write's to find
		if size += len(text) + 1; size > maxErrorBytes {
			break
		}
		first--
	}
	return errs[first:]
}

// Activities are of the clients that ever connected, by client id.
type Activities struct{ table *table.Table[Activity] }

// Get returns a client's activity.
func (a *Activities) Get(clientID string) (Activity, bool) {
	v, _, ok := a.table.Get(clientID)
	return v, ok
}

// aheadOf is how far a node's clock may be ahead of another's.
const aheadOf = time.Hour

// Note keeps where an agent was seen, if it was, unless something newer is known, and
// adds to its errors. What is known from the future was written by a clock that was
// wrong.
func (a *Activities) Note(ctx context.Context, clientID string, seen Seen, errs []ClientError) error {
	_, err := a.table.Change(ctx, clientID, func(v Activity, _ bool) (Activity, error) {
		v.ClientID = clientID
		if !seen.At.IsZero() && (!seen.At.Before(v.Seen.At) || v.Seen.At.After(time.Now().Add(aheadOf))) {
			v.Seen = seen
		}
		// A write that was cut off may have come through: nothing is kept twice.
		fresh := slices.DeleteFunc(slices.Clone(errs), func(e ClientError) bool {
			return slices.ContainsFunc(v.Errors, e.Equal)
		})
		if len(fresh) > 0 {
			v.Errors = append(slices.Clone(v.Errors), fresh...)
			slices.SortStableFunc(v.Errors, func(a, b ClientError) int { return a.Time.Compare(b.Time) })
			v.Errors = newest(v.Errors)
		}
		return v, nil
	})
	return err
}
