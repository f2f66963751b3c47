// Package bucket reads and writes JetStream buckets, used as a key-value store that several
// nodes share. It retries while no server answers. Each write names the revision that it
// replaces, so that no write is made twice or undoes a later one. Its callers decide what is
// kept, and in which form.
package bucket

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// MarkerTTL is how long a bucket remembers that a key was removed.
const MarkerTTL = time.Hour

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("was changed by another at the same time")
	// ErrLost is returned for a store that is gone, or has been replaced by another.
	ErrLost = errors.New("what the relay kept is lost; this node can change nothing until it is restarted, after a restore")
)

// IsConflict reports whether a bucket answered that its revision is not the one that the write
// named.
func IsConflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// Read reads a key's value, and repeats that while the cluster cannot answer.
func Read(ctx context.Context, kv jetstream.KeyValue, key string) (e jetstream.KeyValueEntry, err error) {
	_, _, err = Again(ctx, func(ctx context.Context) (uint64, error) {
		e, err = kv.Get(ctx, key)
		return 0, err
	})
	return e, err
}

// Keys returns the keys of a bucket that match a filter; > matches all. A listing that is cut
// short is incomplete, so it is started again.
func Keys(ctx context.Context, kv jetstream.KeyValue, filter string) (keys []string, err error) {
	_, _, err = Again(ctx, func(ctx context.Context) (uint64, error) {
		lister, err := kv.ListKeysFiltered(ctx, filter)
		if err != nil {
			return 0, err
		}
		defer func() { _ = lister.Stop() }() // it also ends with ctx
		keys = nil
		for key := range lister.Keys() {
			keys = append(keys, key)
		}
		return 0, ctx.Err()
	})
	return keys, err
}

// Replace writes the value of a key in a bucket that has no copy in memory, whatever is there.
// Of several concurrent writers, the last one prevails. Even so, each write names the revision
// that it replaces: a write that a hung server makes only after others have written is then
// refused.
func Replace(ctx context.Context, kv jetstream.KeyValue, key string, value []byte) error {
	for seen := (Contest{}); ; {
		e, err := Read(ctx, kv, key)
		if err := seen.Next(ctx, revisionOf(e)); err != nil {
			return err
		}
		write := func(ctx context.Context) (uint64, error) { return kv.Create(ctx, key, value) }
		switch {
		case err == nil:
			write = func(ctx context.Context) (uint64, error) { return kv.Update(ctx, key, value, e.Revision()) }
		case !errors.Is(err, jetstream.ErrKeyNotFound):
			return err
		}
		_, tries, err := Again(ctx, write)
		if !IsConflict(err) {
			return err
		}
		if tries > 1 { // possibly with an earlier attempt whose answer was lost
			now, err := Read(ctx, kv, key)
			if err == nil && (e == nil || now.Revision() > e.Revision()) && bytes.Equal(now.Value(), value) {
				return nil
			}
		}
	}
}

// Purge removes the value of a key, if there is one, naming its revision as Replace does.
func Purge(ctx context.Context, kv jetstream.KeyValue, key string) error {
	for seen := (Contest{}); ; {
		e, err := Read(ctx, kv, key)
		if err := seen.Next(ctx, revisionOf(e)); err != nil {
			return err
		}
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err = Remove(ctx, kv, key, e.Revision()); !IsConflict(err) {
			return err
		}
	}
}

// Remove removes the value with a given revision, and repeats that while the cluster cannot
// answer. It returns the number of attempts.
func Remove(ctx context.Context, kv jetstream.KeyValue, key string, rev uint64) (tries int, err error) {
	_, tries, err = Again(ctx, func(ctx context.Context) (uint64, error) {
		return 0, kv.Purge(ctx, key, jetstream.LastRevision(rev), jetstream.PurgeTTL(MarkerTTL))
	})
	return tries, err
}

// revisionOf returns the revision of an entry, or 0 if there is none.
func revisionOf(e jetstream.KeyValueEntry) uint64 {
	if e == nil {
		return 0
	}
	return e.Revision()
}
