package table

import (
	"context"
	"maps"
	"math"
)

// reading compares a bucket, as it is read anew, with what is known here.
type reading struct {
	known   map[string]uint64 // revisions by key, of values and removals
	missing map[string]uint64 // of values whose key was not read yet
	older   map[string]uint64 // of what is known of keys of which something older was read
	top     uint64            // the highest revision that was read
}

func (t *Table[T]) beginReading() *reading {
	return &reading{known: t.memory.Between(0, math.MaxUint64), missing: t.memory.Revisions(), older: make(map[string]uint64)}
}

// saw takes in what was read.
func (r *reading) saw(key string, rev uint64) {
	r.top = max(r.top, rev)
	delete(r.missing, key)
	if known := r.known[key]; rev < known {
		r.older[key] = known
	} else {
		delete(r.older, key)
	}
}

// endReading forgets what the bucket has no more, and finds out what it has lost: that of
// which it has something older, and all that is gone without the mark of a removal, unless
// this node was away for as long as those are kept.
func (t *Table[T]) endReading(ctx context.Context, r *reading) {
	maps.DeleteFunc(r.older, func(_ string, known uint64) bool { return known > r.top }) // the server may lag
	if t.inTouch() && !t.set.living(t.name) {
		maps.Copy(r.older, r.missing)
		r.missing = nil
	}
	if len(r.older) > 0 && !t.isAnother(ctx) {
		t.suspects.add(r.older)
	}
	t.forget(ctx, r.missing, r.top)
}
