package table

import (
	"bytes"
	"context"
	"errors"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/leader"
)

// Change replaces the value of a key by what f makes of it, even if several nodes do so at the
// same time; f may therefore be called more than once. exists is false if there is no value
// yet.
func (t *Table[T]) Change(ctx context.Context, key string, f func(v T, exists bool) (T, error)) (T, error) {
	var none T
	for seen := (bucket.Contest{}); ; {
		v, rev, ok := t.Get(key)
		if err := seen.Next(ctx, rev); err != nil {
			return none, err
		}
		if !ok {
			v = none
		}
		next, err := f(v, ok)
		if err != nil {
			return none, err
		}
		if ok {
			err = t.Update(ctx, key, next, rev)
		} else if err = t.Create(ctx, key, next); errors.Is(err, bucket.ErrExists) {
			err = bucket.ErrConflict
		}
		if !errors.Is(err, bucket.ErrConflict) {
			return next, err
		}
		if _, err := t.Refresh(ctx, key); err != nil { // another writer was first: the watch may be behind
			return none, err
		}
	}
}

// Against returns an error if a change must not replace the existing value. It may be called
// more than once. A nil Against allows everything.
type Against[T any] func(v T, exists bool) error

// Unless makes a change, unless against returns an error. In that case it refreshes the value
// and asks once more, since the memory may be behind what was read at another node.
func (t *Table[T]) Unless(ctx context.Context, key string, against Against[T], change func(Against[T]) error) error {
	if against == nil {
		return change(func(T, bool) error { return nil })
	}
	var refused bool
	err := change(func(v T, exists bool) error {
		err := against(v, exists)
		refused = err != nil
		return err
	})
	if !refused {
		return err
	}
	if _, err := t.Refresh(ctx, key); err != nil {
		return err
	}
	return change(against)
}

// Refresh takes in what the bucket's leader has under a key for which the memory was found to
// be behind. It reports whether that is a value.
func (t *Table[T]) Refresh(ctx context.Context, key string) (there bool, err error) {
	w, ok, err := t.latest(ctx, key)
	if !ok || err != nil {
		return false, err
	}
	return !w.Removed, t.takeWritten(w)
}

// latest returns what the bucket's leader has under a key, or false if there is nothing. It
// retries while the cluster has no leader.
func (t *Table[T]) latest(ctx context.Context, key string) (w leader.Written, ok bool, err error) {
	_, _, err = bucket.Again(ctx, func(ctx context.Context) (uint64, error) {
		w, ok, err = t.leader.Get(ctx, key)
		return 0, err
	})
	return w, ok, err
}

// add writes a value under a key that has none. repeated says that this was tried before, so
// an existing value may stem from an attempt whose answer was lost. The library's Create is
// not used: it asks any server of the bucket whether the key was removed, and a server that
// lags does not know of the removal.
func (t *Table[T]) add(ctx context.Context, key string, data []byte, repeated bool) (uint64, error) {
	rev, err := t.kv.Update(ctx, key, data, 0)
	if !bucket.IsConflict(err) {
		return rev, err
	}
	w, ok, getErr := t.leader.Get(ctx, key)
	switch {
	case getErr != nil:
		return 0, getErr
	case ok && w.Removed:
		return t.kv.Update(ctx, key, data, w.Rev)
	case ok && repeated && bytes.Equal(w.Value, data):
		return w.Rev, nil
	}
	return 0, err
}

// List returns all values, in no particular order.
func (t *Table[T]) List() []T {
	list := []T{}
	t.Each(func(_ string, v T) bool { list = append(list, v); return true })
	return list
}

// Drop removes the value of a key, or returns ErrNotFound.
func (t *Table[T]) Drop(ctx context.Context, key string) error {
	return t.DropUnless(ctx, key, func(T, bool) error { return nil })
}

// DropUnless is Drop, unless against returns an error.
func (t *Table[T]) DropUnless(ctx context.Context, key string, against func(v T, exists bool) error) error {
	for seen := (bucket.Contest{}); ; {
		v, rev, ok := t.Get(key)
		if err := seen.Next(ctx, rev); err != nil {
			return err
		}
		if err := against(v, ok); err != nil {
			return err
		}
		if !ok {
			return bucket.ErrNotFound
		}
		if err := t.Remove(ctx, key, rev); !errors.Is(err, bucket.ErrConflict) {
			return err
		}
		if _, err := t.Refresh(ctx, key); err != nil {
			return err
		}
	}
}
