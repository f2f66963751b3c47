// Package replica holds a node's copy of the contents of a bucket. Newer revisions replace
// older ones, in whatever order they arrive, and listeners learn of changes in the order of
// revisions. Its callers supply the revisions and values.
package replica

import (
	"maps"
	"sync"
	"time"

	"adit/internal/monotime"
)

// Replica is a copy of the values of one type under keys. All methods may be called
// from several goroutines.
type Replica[T any] struct {
	memory time.Duration // how long a removal is remembered

	// order is held from a change until all are told of it, so that they hear of
	// changes in the order of revisions, and whoever makes one goes on only when they
	// have heard of it. It is taken before mu.
	order   sync.Mutex
	mu      sync.RWMutex
	entries map[string]entry[T]
	cleared time.Duration // when removals were last forgotten, by monotime.Now
	changed []func(key string, value T, exists bool)
}

// entry is a value and its revision. A removed one stays for a while, so that an
// older write that is still under way to us does not bring it back, nor does a
// server that lags and knows of no removal.
type entry[T any] struct {
	value   T
	rev     uint64
	removed bool
	at      time.Duration // when we heard of the removal, by monotime.Now
	written time.Time     // see Entry
}

// Entry is what is known of a key.
type Entry[T any] struct {
	Value    T
	Revision uint64 // of the value, or of its removal
	Removed  bool
	Written  time.Time // by the bucket's clock; zero: not known
}

// New is a replica of nothing yet, which remembers a removal for a time.
func New[T any](memory time.Duration) *Replica[T] {
	return &Replica[T]{memory: memory, entries: make(map[string]entry[T])}
}

// Set takes the value of a revision, unless something as new is known.
func (r *Replica[T]) Set(key string, v T, rev uint64) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	if old, ok := r.entries[key]; ok && old.rev >= rev {
		r.mu.Unlock()
		return
	}
	r.entries[key] = entry[T]{value: v, rev: rev}
	r.mu.Unlock()
	r.tell(key, v, true)
}

func (r *Replica[T]) tell(key string, v T, exists bool) {
	r.mu.RLock()
	listeners := r.changed
	r.mu.RUnlock()
	for _, f := range listeners {
		f(key, v, exists)
	}
}

// OnChange calls f for every change from now on, of this node or another. f
// must not wait, and must not change the replica.
func (r *Replica[T]) OnChange(f func(key string, value T, exists bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed[:len(r.changed):len(r.changed)], f)
}

// OnValues calls f with every value that is there, and then as OnChange does. No
// change falls between the two.
func (r *Replica[T]) OnValues(f func(key string, value T, exists bool)) {
	r.order.Lock()
	defer r.order.Unlock()
	now := make(map[string]T)
	r.Each(func(key string, v T) bool {
		now[key] = v
		return true
	})
	for key, v := range now {
		f(key, v, true)
	}
	r.OnChange(f)
}

// Get returns the value of a key and its revision.
func (r *Replica[T]) Get(key string) (T, uint64, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.entries[key]
	return e.value, e.rev, ok && !e.removed
}

// Entry returns what is known of a key; false: nothing is.
func (r *Replica[T]) Entry(key string) (Entry[T], bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.entries[key]
	return Entry[T]{Value: e.value, Revision: e.rev, Removed: e.removed, Written: e.written}, ok
}

// Date notes when a revision of a key was written, by the bucket's clock. It reports
// whether that may be the write of this revision that is known.
func (r *Replica[T]) Date(key string, rev uint64, written time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.entries[key]
	if !ok || e.rev != rev {
		return true
	}
	if e.written.IsZero() {
		e.written = written
		r.entries[key] = e
	}
	return e.written.Equal(written)
}

// Revision is the newest of a key, of a value or its removal, that all listeners have been
// told of, and whether there is a value; 0: nothing is known of it.
func (r *Replica[T]) Revision(key string) (rev uint64, exists bool) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.entries[key]
	return e.rev, ok && !e.removed
}

// Newest is the highest revision that is known of.
func (r *Replica[T]) Newest() (rev uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, e := range r.entries {
		rev = max(rev, e.rev)
	}
	return rev
}

// Between are the revisions, by key, that are higher than one and no higher than another:
// of values, and of removals that are remembered.
func (r *Replica[T]) Between(low, high uint64) map[string]uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	found := make(map[string]uint64)
	for key, e := range r.entries {
		if e.rev > low && e.rev <= high {
			found[key] = e.rev
		}
	}
	return found
}

// Each calls f with every value, in no order, until it returns false.
func (r *Replica[T]) Each(f func(key string, value T) bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for key, e := range r.entries {
		if !e.removed && !f(key, e.value) {
			return
		}
	}
}

// Messages is how many messages of the bucket are known: values, and marks of removals that
// were written after a time of its clock.
func (r *Replica[T]) Messages(after time.Time) (n uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, e := range r.entries {
		if !e.removed || e.written.After(after) {
			n++
		}
	}
	return n
}

// Revisions are those of all values, by key.
func (r *Replica[T]) Revisions() map[string]uint64 {
	r.mu.RLock()
	defer r.mu.RUnlock()
	all := make(map[string]uint64, len(r.entries))
	for key, e := range r.entries {
		if !e.removed {
			all[key] = e.rev
		}
	}
	return all
}

// Past reports whether a revision of a key has no value here any more: it was removed,
// or something newer is known, or nothing at all.
func (r *Replica[T]) Past(key string, rev uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.entries[key]
	return !ok || e.removed || e.rev > rev
}

// Remove marks the value of a revision as removed, and what is older with it.
func (r *Replica[T]) Remove(key string, rev uint64) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.Lock()
	old, ok := r.entries[key]
	if ok && (old.rev > rev || old.rev == rev && old.removed) {
		r.mu.Unlock()
		return
	}
	now := monotime.Now()
	r.entries[key] = entry[T]{rev: rev, removed: true, at: now}
	if now-r.cleared > r.memory/4 {
		r.cleared = now
		maps.DeleteFunc(r.entries, func(_ string, e entry[T]) bool { return e.removed && now-e.at > r.memory })
	}
	r.mu.Unlock()
	if ok && !old.removed {
		var none T
		r.tell(key, none, false)
	}
}

// Forget drops the values of these revisions, by key, of which nothing tells that they
// were removed.
func (r *Replica[T]) Forget(gone map[string]uint64) {
	r.order.Lock()
	defer r.order.Unlock()
	for key, rev := range gone {
		r.mu.Lock()
		e, ok := r.entries[key]
		gone := ok && e.rev == rev
		if gone {
			delete(r.entries, key)
		}
		r.mu.Unlock()
		if gone && !e.removed {
			var none T
			r.tell(key, none, false)
		}
	}
}
