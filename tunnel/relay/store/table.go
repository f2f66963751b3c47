package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// table is a bucket of values of one type, with a copy in memory that its own
// writes reach at once and those of other nodes through a watch.
type table[T any] struct {
	name   string
	kv     jetstream.KeyValue
	log    *slog.Logger
	took   *meter
	notify func(n notice, value []byte) // other nodes, after a write
	leader leader
	// leads asks the bucket's leader what is under a key; see forget.
	leads  func(ctx context.Context, key string) (there bool, err error)
	done   chan struct{}
	stale  chan struct{} // asks for a new watch; room for one
	seen   atomic.Uint64 // the highest revision that a watch brought
	newest uint64        // what the leader had when keepUp asked last

	// order is held from a change of the memory until all are told of it, so
	// that they hear of changes in the order of revisions, and a write returns
	// only when they have heard of it. It is taken before mu.
	order   sync.Mutex
	mu      sync.RWMutex
	entries map[string]entry[T]
	changed []func(key string, value T, exists bool)
}

// entry is a value and its revision. A removed one stays until the watch has
// seen the removal, so that an older write that is still under way to us does
// not bring it back.
type entry[T any] struct {
	value   T
	rev     uint64
	removed bool
}

func (t *table[T]) set(key string, v T, rev uint64) {
	t.order.Lock()
	defer t.order.Unlock()
	t.mu.Lock()
	if old, ok := t.entries[key]; ok && old.rev >= rev {
		t.mu.Unlock()
		return
	}
	t.entries[key] = entry[T]{value: v, rev: rev}
	t.mu.Unlock()
	t.tell(key, v, true)
}

func (t *table[T]) tell(key string, v T, exists bool) {
	t.mu.RLock()
	listeners := t.changed
	t.mu.RUnlock()
	for _, f := range listeners {
		f(key, v, exists)
	}
}

// onChange calls f for every change from now on, of this node or another. f
// must not wait, and must not write to the table.
func (t *table[T]) onChange(f func(key string, value T, exists bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changed = append(t.changed[:len(t.changed):len(t.changed)], f)
}

func (t *table[T]) get(key string) (T, uint64, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	e, ok := t.entries[key]
	return e.value, e.rev, ok && !e.removed
}

// each calls f with every value, in no order, until it returns false.
func (t *table[T]) each(f func(key string, value T) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for key, e := range t.entries {
		if !e.removed && !f(key, e.value) {
			return
		}
	}
}

// create stores a value under a key that has none, else returns ErrExists.
func (t *table[T]) create(ctx context.Context, key string, v T) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	start := time.Now()
	rev, tries, err := again(ctx, func(ctx context.Context) (uint64, error) { return t.kv.Create(ctx, key, data) })
	if tries > 1 && errors.Is(err, jetstream.ErrKeyExists) { // perhaps by the try whose answer was lost
		if e, getErr := readAgain(ctx, t.kv, key); getErr == nil && bytes.Equal(e.Value(), data) {
			rev, err = e.Revision(), nil
		}
	}
	t.took.add(start, err)
	if errors.Is(err, jetstream.ErrKeyExists) {
		return ErrExists
	}
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	t.set(key, v, rev)
	t.notify(notice{Table: t.name, Key: key, Revision: rev}, data)
	return nil
}

// put stores a value, whatever is there. It names the revision that it replaces
// all the same: a write that a server has kept back, and makes when it goes on
// after others have written, is refused then.
func (t *table[T]) put(ctx context.Context, key string, v T) error {
	_, err := t.change(ctx, key, func(T, bool) (T, error) { return v, nil })
	return err
}

// update replaces the value of a revision, else returns ErrConflict.
func (t *table[T]) update(ctx context.Context, key string, v T, rev uint64) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	start := time.Now()
	next, tries, err := again(ctx, func(ctx context.Context) (uint64, error) { return t.kv.Update(ctx, key, data, rev) })
	if tries > 1 && isConflict(err) { // perhaps with the try whose answer was lost
		if e, getErr := readAgain(ctx, t.kv, key); getErr == nil && bytes.Equal(e.Value(), data) {
			next, err = e.Revision(), nil
		}
	}
	t.took.add(start, err)
	if isConflict(err) {
		return ErrConflict
	}
	if err != nil {
		return fmt.Errorf("store %s %q: %w", t.name, key, err)
	}
	t.set(key, v, next)
	t.notify(notice{Table: t.name, Key: key, Revision: next}, data)
	return nil
}

// isConflict reports whether a bucket holds another revision than was named.
func isConflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch)
}

// remove removes the value of a revision, else returns ErrConflict.
func (t *table[T]) remove(ctx context.Context, key string, rev uint64) error {
	start := time.Now()
	_, tries, err := again(ctx, func(ctx context.Context) (uint64, error) {
		return 0, t.kv.Purge(ctx, key, jetstream.LastRevision(rev), jetstream.PurgeTTL(markerTTL))
	})
	if tries > 1 && isConflict(err) { // perhaps with the try whose answer was lost
		if _, getErr := readAgain(ctx, t.kv, key); errors.Is(getErr, jetstream.ErrKeyNotFound) {
			err = nil
		}
	}
	t.took.add(start, err)
	if isConflict(err) {
		return ErrConflict
	}
	if err != nil {
		return fmt.Errorf("remove %s %q: %w", t.name, key, err)
	}
	t.unset(key, rev)
	t.notify(notice{Table: t.name, Key: key, Revision: rev, Removed: true}, nil)
	return nil
}

// unset marks the value of a revision as removed.
func (t *table[T]) unset(key string, rev uint64) {
	t.order.Lock()
	defer t.order.Unlock()
	t.mu.Lock()
	old, ok := t.entries[key]
	ok = ok && old.rev <= rev && !old.removed
	if ok {
		old.removed = true
		t.entries[key] = old
	}
	t.mu.Unlock()
	if ok {
		var none T
		t.tell(key, none, false)
	}
}
