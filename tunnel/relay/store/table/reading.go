package table

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/store/bucket"
)

// reading compares the contents of a bucket that is being read again with what is known here.
type reading struct {
	known   map[string]uint64 // revisions by key, of values and removals
	missing map[string]uint64 // revisions of values whose keys have not been read yet
	older   map[string]uint64 // known revisions of keys for which something older was read
	top     uint64            // the highest revision read
}

func (t *Table[T]) beginReading() *reading {
	return &reading{known: t.memory.Between(0, math.MaxUint64), missing: t.memory.Revisions(), older: make(map[string]uint64)}
}

// saw records what was read.
func (r *reading) saw(key string, rev uint64) {
	r.top = max(r.top, rev)
	delete(r.missing, key)
	if known := r.known[key]; rev < known {
		r.older[key] = known
	} else {
		delete(r.older, key)
	}
}

// endReading drops what the bucket no longer contains, and finds out what the bucket has lost.
// That is everything of which it has an older version, and everything that is missing without
// the marker of a removal, unless this node was away for as long as markers are kept.
func (t *Table[T]) endReading(ctx context.Context, r *reading) {
	if t.touch.kept() && !t.set.living(t.name) {
		maps.Copy(r.older, r.missing)
		r.missing = nil
	}
	if len(r.older) > 0 && !t.isAnother(ctx) {
		t.suspect(r.older) // if only the server lags, the leader will say so
	}
	t.forget(ctx, r.missing, r.top)
	t.touch.known()
}

// touch knows whether a node has been in contact with a bucket for as long as markers of
// removals are kept there. If so, a value that is missing without the node or a marker knowing
// of a removal was lost, not removed.
type touch struct {
	mu   sync.Mutex
	at   time.Duration // last contact, by monotime; 0: never
	lost bool          // contact was interrupted, and the bucket has not been read since
}

const touchTime = bucket.MarkerTTL - time.Minute

// renew records contact with the bucket.
func (t *touch) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := monotime.Now()
	t.lost = t.lost || t.at != 0 && now-t.at > touchTime
	t.at = now
}

// known records that the bucket was read and compared.
func (t *touch) known() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = false
	if t.at != 0 {
		t.at = monotime.Now()
	}
}

func (t *touch) kept() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at != 0 && !t.lost && monotime.Now()-t.at <= touchTime
}
