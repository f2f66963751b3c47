package table

import "context"

// Revisions returns the revisions of all values in memory, by key.
func (t *Table[T]) Revisions() map[string]uint64 { return t.memory.Revisions() }

// Known returns the newest revision of a key in memory, and whether it is a value rather than
// a removal. If nothing is known, rev is 0.
func (t *Table[T]) Known(key string) (rev uint64, exists bool) { return t.memory.Revision(key) }

// Taken returns the highest revision up to which the watch has brought everything into memory.
func (t *Table[T]) Taken() uint64 { return t.taken.Load() }

// Last returns the newest revision that was ever written, according to the bucket's leader.
func (t *Table[T]) Last(ctx context.Context) (uint64, error) { return t.leader.Last(ctx) }

// OnWrite calls f after every change from now on. f must not block.
func (t *Table[T]) OnWrite(f func()) { t.OnChange(func(string, T, bool) { f() }) }
