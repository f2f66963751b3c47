package store

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// change replaces the value of a key by what f makes of it, also where several
// nodes do so at once: f may be called again. exists is false where there is
// none yet.
func (t *table[T]) change(ctx context.Context, key string, f func(v T, exists bool) (T, error)) (T, error) {
	var none T
	for range 50 {
		v, rev, ok := t.get(key)
		if !ok {
			v = none
		}
		next, err := f(v, ok)
		if err != nil {
			return none, err
		}
		if ok {
			err = t.update(ctx, key, next, rev)
		} else if err = t.create(ctx, key, next); errors.Is(err, ErrExists) {
			err = ErrConflict
		}
		if !errors.Is(err, ErrConflict) {
			return next, err
		}
		if _, err := t.refresh(ctx, key); err != nil { // another was first: the watch may be behind
			return none, err
		}
	}
	return none, ErrConflict
}

// refresh takes what the bucket has under a key that the memory was found to be
// behind with, and reports false if that is nothing. A value that has gone, or
// cannot be had now, leaves the memory by the watch.
func (t *table[T]) refresh(ctx context.Context, key string) (there bool, err error) {
	e, err := t.kv.Get(ctx, key)
	if err != nil {
		return !errors.Is(err, jetstream.ErrKeyNotFound), nil
	}
	return true, t.take(e)
}

// list returns all values, in no order.
func (t *table[T]) list() []T {
	list := []T{}
	t.each(func(_ string, v T) bool { list = append(list, v); return true })
	return list
}

// drop removes the value of a key, or returns ErrNotFound.
func (t *table[T]) drop(ctx context.Context, key string) error {
	for range 10 {
		_, rev, ok := t.get(key)
		if !ok {
			return ErrNotFound
		}
		if err := t.remove(ctx, key, rev); !errors.Is(err, ErrConflict) {
			return err
		}
		if _, err := t.refresh(ctx, key); err != nil {
			return err
		}
	}
	return ErrConflict
}
