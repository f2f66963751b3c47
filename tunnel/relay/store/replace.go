package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// replaceTries is how often a value that others write at the same time is tried.
const replaceTries = 50

// replace puts a value under a key of a bucket that has no copy in memory,
// whatever is there: of those who do so at once, the last one stays. Each write
// names the revision that it replaces all the same, so that one that a server has
// kept back, and makes when it goes on after others have written, is refused.
func replace(ctx context.Context, kv jetstream.KeyValue, key string, value []byte) error {
	for range replaceTries {
		e, err := readAgain(ctx, kv, key)
		write := func(ctx context.Context) (uint64, error) { return kv.Create(ctx, key, value) }
		switch {
		case err == nil:
			write = func(ctx context.Context) (uint64, error) { return kv.Update(ctx, key, value, e.Revision()) }
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return err
		}
		_, tries, err := again(ctx, write)
		if !isConflict(err) {
			return err
		}
		if tries > 1 { // perhaps with the try whose answer was lost
			now, err := readAgain(ctx, kv, key)
			if err == nil && (e == nil || now.Revision() > e.Revision()) && bytes.Equal(now.Value(), value) {
				return nil
			}
		}
	}
	return ErrConflict
}

// purge removes what is under a key, if anything is, naming its revision as
// replace does.
func purge(ctx context.Context, kv jetstream.KeyValue, key string) error {
	for range replaceTries {
		e, err := readAgain(ctx, kv, key)
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		_, _, err = again(ctx, func(ctx context.Context) (uint64, error) {
			return 0, kv.Purge(ctx, key, jetstream.LastRevision(e.Revision()), jetstream.PurgeTTL(markerTTL))
		})
		if !isConflict(err) {
			return err
		}
	}
	return ErrConflict
}
