package store

import (
	"bytes"
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// replace puts a value under a key of a bucket that has no copy in memory,
// whatever is there: of those who do so at once, the last one stays. Each write
// names the revision that it replaces all the same, so that one that a server has
// kept back, and makes when it goes on after others have written, is refused.
func replace(ctx context.Context, kv jetstream.KeyValue, key string, value []byte) error {
	for seen := (contest{}); ; {
		e, err := readAgain(ctx, kv, key)
		if err := seen.next(ctx, revisionOf(e)); err != nil {
			return err
		}
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
}

// purge removes what is under a key, if anything is, naming its revision as
// replace does.
func purge(ctx context.Context, kv jetstream.KeyValue, key string) error {
	for seen := (contest{}); ; {
		e, err := readAgain(ctx, kv, key)
		if err := seen.next(ctx, revisionOf(e)); err != nil {
			return err
		}
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
}

// revisionOf is 0 where nothing is.
func revisionOf(e jetstream.KeyValueEntry) uint64 {
	if e == nil {
		return 0
	}
	return e.Revision()
}
