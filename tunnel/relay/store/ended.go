package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/table"
)

// EndedSignIns says that the sign-ins of a visitor up to a moment are over.
type EndedSignIns struct {
	User  string    `json:"user"` // in lower case: an address, or what a provider calls somebody
	At    time.Time `json:"at"`
	Until time.Time `json:"until"` // when the last of those sign-ins would be over by itself
}

// Ended are those of all users.
type Ended struct {
	table *table.Table[EndedSignIns]
	store int64 // which store it is
}

// openEnded also finds out which store it is: revisions of another say nothing.
func openEnded(ctx context.Context, t *table.Table[EndedSignIns]) (*Ended, error) {
	e := &Ended{table: t}
	made, err := t.Created(ctx)
	if !made.IsZero() {
		e.store = made.UnixNano()
	}
	return e, err
}

// endedKey is the key of a user, who may be called by any text.
func endedKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}

// Set ends a user's sign-ins. Of two moments the later one stays.
func (e *Ended) Set(ctx context.Context, v EndedSignIns) error {
	_, err := e.table.Change(ctx, endedKey(v.User), func(before EndedSignIns, exists bool) (EndedSignIns, error) {
		if exists && before.At.After(v.At) {
			return before, nil
		}
		return v, nil
	})
	return err
}

// At is the moment up to which a user's sign-ins are over, zero if none are, and its
// number, which rises from one to the next whatever the clocks of nodes say.
func (e *Ended) At(user string) (at time.Time, number uint64) {
	v, number, _ := e.table.Get(endedKey(user))
	return v.At, number
}

// Newest is the highest number that this node knows of.
func (e *Ended) Newest() uint64 { return e.table.Newest() }

// Store tells this store, whose numbers At and Newest have, from others.
func (e *Ended) Store() int64 { return e.store }

// List returns all, in no order.
func (e *Ended) List() []EndedSignIns { return e.table.List() }

// Forget removes those that say nothing any more.
func (e *Ended) Forget(ctx context.Context, now time.Time) error {
	var errs []error
	for _, v := range e.List() {
		if now.Before(v.Until) {
			continue
		}
		err := e.table.DropUnless(ctx, endedKey(v.User), func(v EndedSignIns, exists bool) error {
			if exists && now.Before(v.Until) {
				return bucket.ErrConflict
			}
			return nil
		})
		if err != nil && !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, bucket.ErrConflict) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
