// Package table provides typed tables over JetStream buckets, each with a copy in memory that
// serves all reads. A node's own writes reach the copy at once. Writes by other nodes reach it
// through a watch, through notices, through what nodes tell each other, and by asking the
// leader when all of these are late. Listeners learn of changes in the order of revisions, and
// a write returns once all of them have been told. Callers define the values.
package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/leader"
	"adit/tunnel/relay/store/replica"
)

// Table is a bucket of values of one type with a copy in memory. Its own writes reach the copy
// at once, and those of other nodes through a watch.
type Table[T any] struct {
	name   string
	kv     jetstream.KeyValue
	log    *slog.Logger
	took   *bucket.Meter
	set    *Set
	leader leader.Leader
	// leads asks the bucket's leader whether there is something under a key; see forget.
	leads    func(ctx context.Context, key string) (there bool, err error)
	js       jetstream.JetStream
	stale    chan struct{} // asks for a new watch; capacity 1
	seen     atomic.Uint64 // the highest revision that a watch has brought
	taken    atomic.Uint64 // the same, for entries that are in memory
	newest   uint64        // the leader's newest revision at the last keepUp
	asked    time.Time     // when that was, by the leader's clock
	fewer    bool          // whether the leader then had fewer messages than known, beyond given
	given    uint64        // missing messages that reading the bucket again did not find
	touch    touch         // contact with the leader
	suspects suspects[T]
	unmended bool      // the last attempt to write again what was lost has failed
	made     time.Time // when the bucket that was opened was created; zero: unknown
	memory   *replica.Replica[T]
}

// OnChange calls f for every change from now on, by this node or another. f must not block or
// write to the table.
func (t *Table[T]) OnChange(f func(key string, value T, exists bool)) { t.memory.OnChange(f) }

// OnValues calls f with every current value and then, like OnChange, for every change. It
// misses no change in between.
func (t *Table[T]) OnValues(f func(key string, value T, exists bool)) { t.memory.OnValues(f) }

// Get returns the value of a key and its revision, as known to this node.
func (t *Table[T]) Get(key string) (T, uint64, bool) { return t.memory.Get(key) }

// Revision returns the revision of a key's value that all listeners have been told of, or 0 if
// there is none.
func (t *Table[T]) Revision(key string) uint64 {
	rev, exists := t.memory.Revision(key)
	if !exists {
		return 0
	}
	return rev
}

// Knows reports whether all listeners have been told of everything written under a key up to a
// revision.
func (t *Table[T]) Knows(key string, rev uint64) bool {
	// The entry that the watch brought last may not be in memory yet.
	if t.seen.Load() > rev {
		return true
	}
	known, _ := t.memory.Revision(key)
	return known >= rev
}

// Store identifies the store that the revisions belong to; see Set.Of.
func (t *Table[T]) Store() string { return t.set.ID() }

// Newest returns the highest revision in memory.
func (t *Table[T]) Newest() uint64 { return t.memory.Newest() }

// Each calls f with every value, in no particular order, until f returns false.
func (t *Table[T]) Each(f func(key string, value T) bool) { t.memory.Each(f) }

// Create stores a value under a key that has none. Otherwise it returns ErrExists.
func (t *Table[T]) Create(ctx context.Context, key string, v T) error {
	if err := t.set.refuse(t.name); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	start := time.Now()
	repeated := false
	rev, _, err := bucket.Again(ctx, func(ctx context.Context) (uint64, error) {
		defer func() { repeated = true }()
		return t.add(ctx, key, data, repeated)
	})
	// A removal known here may be newer than everything that the store has.
	if known, exists := t.memory.Revision(key); !exists && known > rev && (err == nil || bucket.IsConflict(err)) {
		if next, done, lostErr := t.overLost(ctx, key, data, known); done || lostErr != nil {
			rev, err = next, lostErr
		}
	}
	t.took.Add(start, err)
	if bucket.IsConflict(err) {
		return bucket.ErrExists
	}
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	t.memory.Set(key, v, rev)
	t.set.notify(notice{Table: t.name, Key: key, Revision: rev}, data)
	return nil
}

// Put stores a value, whatever is there. Even so, it names the revision that it replaces: a
// write that a hung server makes only after others have written is then refused.
func (t *Table[T]) Put(ctx context.Context, key string, v T) error {
	_, err := t.Change(ctx, key, func(T, bool) (T, error) { return v, nil })
	return err
}

// Update replaces the value with a given revision. If that is not the current one, it returns
// ErrConflict.
func (t *Table[T]) Update(ctx context.Context, key string, v T, rev uint64) error {
	if err := t.set.refuse(t.name); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	start := time.Now()
	next, tries, err := bucket.Again(ctx, func(ctx context.Context) (uint64, error) { return t.kv.Update(ctx, key, data, rev) })
	if tries > 1 && bucket.IsConflict(err) { // possibly with an earlier attempt whose answer was lost
		// Only a newer revision counts. Otherwise a server that knows no newer value would
		// make a change that changes nothing look as if it had been made.
		if w, ok, getErr := t.latest(ctx, key); getErr == nil && ok && !w.Removed && w.Rev > rev && bytes.Equal(w.Value, data) {
			next, err = w.Rev, nil
		}
	}
	if bucket.IsConflict(err) {
		if over, done, lostErr := t.overLost(ctx, key, data, rev); done || lostErr != nil {
			next, err = over, lostErr
		}
	}
	t.took.Add(start, err)
	if bucket.IsConflict(err) {
		return bucket.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	t.memory.Set(key, v, next)
	t.set.notify(notice{Table: t.name, Key: key, Revision: next}, data)
	return nil
}

// Remove removes the value with a given revision. If that is not the current one, it returns
// ErrConflict.
func (t *Table[T]) Remove(ctx context.Context, key string, rev uint64) error {
	if err := t.set.refuse(t.name); err != nil {
		return err
	}
	start := time.Now()
	tries, err := bucket.Remove(ctx, t.kv, key, rev)
	if tries > 1 && bucket.IsConflict(err) { // possibly with an earlier attempt whose answer was lost
		if w, ok, getErr := t.latest(ctx, key); getErr == nil && (!ok || w.Removed) {
			err = nil
		}
	}
	if bucket.IsConflict(err) {
		if done, lostErr := t.removeLost(ctx, key, rev); done || lostErr != nil {
			err = lostErr
		}
	}
	t.took.Add(start, err)
	if bucket.IsConflict(err) {
		return bucket.ErrConflict
	}
	if err != nil {
		return fmt.Errorf("remove %s %q: %w", t.name, key, err)
	}
	t.memory.Remove(key, rev)
	t.set.notify(notice{Table: t.name, Key: key, Revision: rev, Removed: true}, nil)
	return nil
}

// PutFor stores a value for a limited time and replaces any other. It makes a single attempt.
// The value is removed automatically when the time is up.
func (t *Table[T]) PutFor(ctx context.Context, key string, v T, lasts time.Duration) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	start := time.Now()
	// The bucket's own Put does not support a time to live.
	ack, err := t.js.Publish(ctx, "$KV."+t.kv.Bucket()+"."+key, data, jetstream.WithMsgTTL(lasts))
	t.took.Add(start, err)
	if err != nil {
		return err
	}
	t.memory.Set(key, v, ack.Sequence)
	return nil
}

// Created returns when the table's bucket was created, or zero if the engine does not say. It
// keeps asking until ctx ends.
func (t *Table[T]) Created(ctx context.Context) (at time.Time, err error) {
	err = bucket.Patiently(ctx, func(ctx context.Context) (err error) {
		at, err = t.created(ctx)
		return err
	})
	return at, err
}

// created is Created with a single attempt.
func (t *Table[T]) created(ctx context.Context) (time.Time, error) {
	status, err := t.kv.Status(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("ask how old the store of %s is: %w", t.name, err)
	}
	if s, ok := status.(*jetstream.KeyValueBucketStatus); ok {
		return s.StreamInfo().Created, nil
	}
	return time.Time{}, nil
}
