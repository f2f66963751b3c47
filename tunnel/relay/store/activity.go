package store

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"adit/tunnel/relay/store/table"
)

// Seen says when and where a client's agent was last seen.
type Seen struct {
	At        time.Time `json:"at"`
	Connected bool      `json:"connected"` // to Node, at that time
	Node      string    `json:"node"`
	Address   string    `json:"address"`
	Transport string    `json:"transport"`
	Version   string    `json:"version"`
	OS        string    `json:"os"`
	Arch      string    `json:"arch"`
	Hostname  string    `json:"hostname,omitempty"`
	Instance  string    `json:"instance"`
}

// ClientError is an error that an agent reported.
type ClientError struct {
	Time    time.Time `json:"time"`
	Key     string    `json:"key,omitempty"`
	Message string    `json:"message"`
	Node    string    `json:"node"`
}

// Equal reports whether e and o are the same report.
func (e ClientError) Equal(o ClientError) bool {
	return e.Time.Equal(o.Time) && e.Key == o.Key && e.Message == o.Message && e.Node == o.Node
}

// Activity is what is known of a client's agents, even while they are away.
type Activity struct {
	ClientID string        `json:"client_id"`
	Seen     Seen          `json:"seen"`
	Errors   []ClientError `json:"errors,omitempty"` // oldest first
}

const (
	// MaxErrors is how many errors are kept per client.
	MaxErrors = 50
	// maxErrorBytes limits their total size as JSON. A value has room for twice as much.
	maxErrorBytes = 128 << 10
)

// newest returns the most recent errors, within both limits.
func newest(errs []ClientError) []ClientError {
	first, size := len(errs), 0
	for first > max(0, len(errs)-MaxErrors) {
		text, _ := json.Marshal(errs[first-1]) // an error that cannot be marshalled fails the write later
		if size += len(text) + 1; size > maxErrorBytes {
			break
		}
		first--
	}
	return errs[first:]
}

// Activities holds the activity of every client that has ever connected, by client ID.
type Activities struct{ table *table.Table[Activity] }

// Get returns a client's activity.
func (a *Activities) Get(clientID string) (Activity, bool) {
	v, _, ok := a.table.Get(clientID)
	return v, ok
}

// aheadOf is how far one node's clock may be ahead of another's.
const aheadOf = time.Hour

// Note records where an agent was seen, unless seen is zero or something newer is known, and
// adds to its errors. A known time in the future was written by a wrong clock and is
// overwritten.
func (a *Activities) Note(ctx context.Context, clientID string, seen Seen, errs []ClientError) error {
	_, err := a.table.Change(ctx, clientID, func(v Activity, _ bool) (Activity, error) {
		v.ClientID = clientID
		if !seen.At.IsZero() && (!seen.At.Before(v.Seen.At) || v.Seen.At.After(time.Now().Add(aheadOf))) {
			v.Seen = seen
		}
		// A write that was cut off may have been made after all, so skip what is already
		// there.
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
