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

// Table is a bucket of values of one type, with a copy in memory that its own
// writes reach at once and those of other nodes through a watch.
type Table[T any] struct {
	name   string
	kv     jetstream.KeyValue
	log    *slog.Logger
	took   *bucket.Meter
	set    *Set
	leader leader.Leader
	// leads asks the bucket's leader what is under a key; see forget.
	leads    func(ctx context.Context, key string) (there bool, err error)
	js       jetstream.JetStream
	stale    chan struct{} // asks for a new watch; room for one
	seen     atomic.Uint64 // the highest revision that a watch brought
	taken    atomic.Uint64 // and that is in memory, as all before it is
	newest   uint64        // what the leader had when keepUp asked last
	asked    time.Time     // and when, by its clock
	fewer    bool          // whether it had fewer messages then than are known, and given
	given    uint64        // how many it lacks that a reading did not find
	touch    touch         // with the leader
	suspects suspects[T]
	unmended bool      // whether some could not be written again when it was tried last
	made     time.Time // when the bucket was that was opened; zero: the engine did not say
	memory   *replica.Replica[T]
}

// OnChange calls f for every change from now on, of this node or another. f
// must not wait, and must not write to the table.
func (t *Table[T]) OnChange(f func(key string, value T, exists bool)) { t.memory.OnChange(f) }

// OnValues calls f with every value that is there, and then as OnChange does. No
// change falls between the two.
func (t *Table[T]) OnValues(f func(key string, value T, exists bool)) { t.memory.OnValues(f) }

// Get returns the value of a key and its revision, as far as it is known here.
func (t *Table[T]) Get(key string) (T, uint64, bool) { return t.memory.Get(key) }

// Revision is that of a key's value that all listeners have been told of; 0: there is none.
func (t *Table[T]) Revision(key string) uint64 {
	rev, exists := t.memory.Revision(key)
	if !exists {
		return 0
	}
	return rev
}

// Knows reports whether all listeners have been told of what was written under a key up
// to a revision.
func (t *Table[T]) Knows(key string, rev uint64) bool {
	// What the watch has brought last may be on its way into memory.
	if t.seen.Load() > rev {
		return true
	}
	known, _ := t.memory.Revision(key)
	return known >= rev
}

// Store is which store the revisions are of; see Set.Of.
func (t *Table[T]) Store() string { return t.set.ID() }

// Newest is the highest revision that is in memory.
func (t *Table[T]) Newest() uint64 { return t.memory.Newest() }

// Each calls f with every value, in no order, until it returns false.
func (t *Table[T]) Each(f func(key string, value T) bool) { t.memory.Each(f) }

// Create stores a value under a key that has none, else returns ErrExists.
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
	// A removal that is known here may be newer than all that the store has.
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

// Put stores a value, whatever is there. It names the revision that it replaces
// all the same: a write that a server has kept back, and makes when it goes on
// after others have written, is refused then.
func (t *Table[T]) Put(ctx context.Context, key string, v T) error {
	_, err := t.Change(ctx, key, func(T, bool) (T, error) { return v, nil })
	return err
}

// Update replaces the value of a revision, else returns ErrConflict.
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
	if tries > 1 && bucket.IsConflict(err) { // perhaps with the try whose answer was lost
		// What is newer than what was to be replaced, or a change that changes nothing
		// would be taken for made by a server that knows no newer value.
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

// Remove removes the value of a revision, else returns ErrConflict.
func (t *Table[T]) Remove(ctx context.Context, key string, rev uint64) error {
	if err := t.set.refuse(t.name); err != nil {
		return err
	}
	start := time.Now()
	tries, err := bucket.Remove(ctx, t.kv, key, rev)
	if tries > 1 && bucket.IsConflict(err) { // perhaps with the try whose answer was lost
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

// PutFor puts a value in place of any other, once, for a time: it is removed by itself
// when that is over.
func (t *Table[T]) PutFor(ctx context.Context, key string, v T, lasts time.Duration) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	start := time.Now()
	// The bucket's own Put knows no time to live.
	ack, err := t.js.Publish(ctx, "$KV."+t.kv.Bucket()+"."+key, data, jetstream.WithMsgTTL(lasts))
	t.took.Add(start, err)
	if err != nil {
		return err
	}
	t.memory.Set(key, v, ack.Sequence)
	return nil
}

// Created is when the table's bucket was made; zero where the engine does not say. It
// is asked until ctx ends.
func (t *Table[T]) Created(ctx context.Context) (at time.Time, err error) {
	err = bucket.Patiently(ctx, func(ctx context.Context) (err error) {
		at, err = t.created(ctx)
		return err
	})
	return at, err
}

// created is Created, asked once.
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
