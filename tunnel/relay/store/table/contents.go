package table

import "context"

// Revisions are those of all values that are in memory, by key.
func (t *Table[T]) Revisions() map[string]uint64 { return t.memory.Revisions() }

// Known is the newest revision of a key that is in memory, and whether it is a value's
// and not a removal's; 0: nothing is known of it.
func (t *Table[T]) Known(key string) (rev uint64, exists bool) { return t.memory.Revision(key) }

// Taken is the highest revision that the watch has brought into memory, and with it all
// that is older.
func (t *Table[T]) Taken() uint64 { return t.taken.Load() }

// Last is the newest revision that was ever written, as the engine says.
func (t *Table[T]) Last(ctx context.Context) (uint64, error) { return t.leader.Last(ctx) }

// OnWrite calls f after every change from now on. f must not wait.
func (t *Table[T]) OnWrite(f func()) { t.OnChange(func(string, T, bool) { f() }) }
