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

// MarkerTTL is how long a bucket remembers a removed key.
const MarkerTTL = time.Hour

// Errors that callers branch on.
var (
	ErrNotFound = errors.New("not found")
	ErrExists   = errors.New("exists already")
	ErrConflict = errors.New("was changed by another at the same time")
	// ErrLost is of a store that is not there any more, or is another by now.
	ErrLost = errors.New("what the relay kept is lost; this node can change nothing until it is restarted, after a restore")
)

// IsConflict reports whether a bucket answered that it holds another revision than
// was named.
func IsConflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// Read reads a key's value, and once more while the cluster has nobody to answer.
func Read(ctx context.Context, kv jetstream.KeyValue, key string) (e jetstream.KeyValueEntry, err error) {
	_, _, err = Again(ctx, func(ctx context.Context) (uint64, error) {
		e, err = kv.Get(ctx, key)
		return 0, err
	})
	return e, err
}

// Keys returns the keys of a bucket that match a filter, of which > is all.
// What a listing brought before it was cut short is not all: it begins anew.
func Keys(ctx context.Context, kv jetstream.KeyValue, filter string) (keys []string, err error) {
	_, _, err = Again(ctx, func(ctx context.Context) (uint64, error) {
		lister, err := kv.ListKeysFiltered(ctx, filter)
		if err != nil {
			return 0, err
		}
		defer func() { _ = lister.Stop() }() // it ends with ctx, too
		keys = nil
		for key := range lister.Keys() {
			keys = append(keys, key)
		}
		return 0, ctx.Err()
	})
	return keys, err
}

// Replace puts a value under a key of a bucket that has no copy in memory,
// whatever is there: of those who do so at once, the last one stays. Each write
// names the revision that it replaces all the same, so that one that a server has
// kept back, and makes when it goes on after others have written, is refused.
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
		if tries > 1 { // perhaps with the try whose answer was lost
			now, err := Read(ctx, kv, key)
			if err == nil && (e == nil || now.Revision() > e.Revision()) && bytes.Equal(now.Value(), value) {
				return nil
			}
		}
	}
}

// Purge removes what is under a key, if anything is, naming its revision as
// Replace does.
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

// Remove removes the value of a revision, and once more while the cluster has nobody
// to answer. It returns how often it tried.
func Remove(ctx context.Context, kv jetstream.KeyValue, key string, rev uint64) (tries int, err error) {
	_, tries, err = Again(ctx, func(ctx context.Context) (uint64, error) {
		return 0, kv.Purge(ctx, key, jetstream.LastRevision(rev), jetstream.PurgeTTL(MarkerTTL))
	})
	return tries, err
}

// revisionOf is 0 where nothing is.
func revisionOf(e jetstream.KeyValueEntry) uint64 {
	if e == nil {
		return 0
	}
	return e.Revision()
}
