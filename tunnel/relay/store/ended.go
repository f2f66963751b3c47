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

// EndedSignIns says that a visitor's sign-ins up to some moment are no longer valid.
type EndedSignIns struct {
	User  string    `json:"user"` // in lower case: an address, or a provider's name for the user
	At    time.Time `json:"at"`
	Until time.Time `json:"until"` // when the last of those sign-ins would have expired anyway
}

// Ended holds the EndedSignIns of all users.
type Ended struct {
	table *table.Table[EndedSignIns]
	store int64 // identifies the store
}

// openEnded also determines the identity of the store, since revisions are only meaningful
// within one store.
func openEnded(ctx context.Context, t *table.Table[EndedSignIns]) (*Ended, error) {
	e := &Ended{table: t}
	made, err := t.Created(ctx)
	if !made.IsZero() {
		e.store = made.UnixNano()
	}
	return e, err
}

// endedKey returns the key of a user, whose name may be any text.
func endedKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}

// Set ends a user's sign-ins. If they were ended before, the later of the two moments counts.
func (e *Ended) Set(ctx context.Context, v EndedSignIns) error {
	_, err := e.table.Change(ctx, endedKey(v.User), func(before EndedSignIns, exists bool) (EndedSignIns, error) {
		if exists && before.At.After(v.At) {
			return before, nil
		}
		return v, nil
	})
	return err
}

// At returns the moment up to which a user's sign-ins are invalid, or zero if none are. number
// increases from one such moment to the next, whatever the nodes' clocks say.
func (e *Ended) At(user string) (at time.Time, number uint64) {
	v, number, _ := e.table.Get(endedKey(user))
	return v.At, number
}

// Newest returns the highest number that this node knows.
func (e *Ended) Newest() uint64 { return e.table.Newest() }

// Store identifies the store to which the numbers of At and Newest belong.
func (e *Ended) Store() int64 { return e.store }

// List returns all entries, in no particular order.
func (e *Ended) List() []EndedSignIns { return e.table.List() }

// Forget removes entries that no longer have any effect.
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
