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

// Replica is a copy of the values of one type, by key. Its methods are safe for concurrent
// use.
type Replica[T any] struct {
	memory time.Duration // how long removals are remembered

	// order is held from a change until all listeners have been told of it. Listeners thus
	// learn of changes in the order of revisions, and whoever makes a change continues only
	// after that. It is acquired before mu.
	order   sync.Mutex
	mu      sync.RWMutex
	entries map[string]entry[T]
	cleared time.Duration // when old removals were last dropped, by monotime.Now
	changed []func(key string, value T, exists bool)
}

// entry is a value and its revision. A removed one is kept for a while, so that neither an
// older write that is still on its way here nor a lagging server that does not know of the
// removal brings it back.
type entry[T any] struct {
	value   T
	rev     uint64
	removed bool
	at      time.Duration // when this node learned of the removal, by monotime.Now
	written time.Time     // see Entry
}

// Entry is what is known about a key.
type Entry[T any] struct {
	Value    T
	Revision uint64 // of the value, or of its removal
	Removed  bool
	Written  time.Time // by the bucket's clock; zero: unknown
}

// New returns an empty replica that remembers removals for the given time.
func New[T any](memory time.Duration) *Replica[T] {
	return &Replica[T]{memory: memory, entries: make(map[string]entry[T])}
}

// Set records the value of a revision, unless that revision or a newer one is already known.
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

// OnChange calls f for every change from now on, by this node or another. f must not block or
// change the replica.
func (r *Replica[T]) OnChange(f func(key string, value T, exists bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed = append(r.changed[:len(r.changed):len(r.changed)], f)
}

// OnValues calls f with every current value and then, like OnChange, for every change. It
// misses no change in between.
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

// Entry returns what is known about a key. It returns false if nothing is.
func (r *Replica[T]) Entry(key string) (Entry[T], bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.entries[key]
	return Entry[T]{Value: e.value, Revision: e.rev, Removed: e.removed, Written: e.written}, ok
}

// Date records when a revision of a key was written, by the bucket's clock. It reports whether
// the known write of this revision may be the same one.
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

// Revision returns the newest revision of a key that all listeners have been told of, and
// whether it is a value rather than a removal. If nothing is known, rev is 0.
func (r *Replica[T]) Revision(key string) (rev uint64, exists bool) {
	r.order.Lock()
	defer r.order.Unlock()
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.entries[key]
	return e.rev, ok && !e.removed
}

// Newest returns the highest known revision.
func (r *Replica[T]) Newest() (rev uint64) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, e := range r.entries {
		rev = max(rev, e.rev)
	}
	return rev
}

// Between returns the revisions greater than low and at most high, by key, of values and
// remembered removals.
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

// Each calls f with every value, in no particular order, until f returns false.
func (r *Replica[T]) Each(f func(key string, value T) bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for key, e := range r.entries {
		if !e.removed && !f(key, e.value) {
			return
		}
	}
}

// Messages returns how many of the bucket's messages are known: values, and removals that were
// written after the given time of the bucket's clock.
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

// Revisions returns the revisions of all values, by key.
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

// Past reports whether a revision of a key has no value here any more, because it was removed,
// something newer is known, or nothing is known.
func (r *Replica[T]) Past(key string, rev uint64) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	e, ok := r.entries[key]
	return !ok || e.removed || e.rev > rev
}

// Remove records the removal of a revision, and of older ones with it.
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

// Forget drops the values with the given revisions, by key, without recording a removal.
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
