package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// EndedSignIns says that the sign-ins of a visitor up to a moment are over.
type EndedSignIns struct {
	User  string    `json:"user"` // in lower case: an address, or what a provider calls somebody
	At    time.Time `json:"at"`
	Until time.Time `json:"until"` // when the last of those sign-ins would be over by itself
}

// Ended are those of all users.
type Ended struct{ table *table[EndedSignIns] }

// endedKey is the key of a user, who may be called by any text.
func endedKey(user string) string {
	sum := sha256.Sum256([]byte(user))
	return hex.EncodeToString(sum[:])
}

// Set ends a user's sign-ins. Of two moments the later one stays.
func (e *Ended) Set(ctx context.Context, v EndedSignIns) error {
	_, err := e.table.change(ctx, endedKey(v.User), func(before EndedSignIns, exists bool) (EndedSignIns, error) {
		if exists && before.At.After(v.At) {
			return before, nil
		}
		return v, nil
	})
	return err
}

// At is the moment up to which a user's sign-ins are over; zero: none are.
func (e *Ended) At(user string) time.Time {
	v, _, _ := e.table.get(endedKey(user))
	return v.At
}

// List returns all, in no order.
func (e *Ended) List() []EndedSignIns { return e.table.list() }

// Forget removes those that say nothing any more.
func (e *Ended) Forget(ctx context.Context, now time.Time) error {
	var errs []error
	for _, v := range e.List() {
		if now.Before(v.Until) {
			continue
		}
		err := e.table.dropUnless(ctx, endedKey(v.User), func(v EndedSignIns, exists bool) error {
			if exists && now.Before(v.Until) {
				return ErrConflict
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrConflict) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
