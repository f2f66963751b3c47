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
	if t.touch.kept() && !t.set.living(t.name) {
		maps.Copy(r.older, r.missing)
		r.missing = nil
	}
	if len(r.older) > 0 && !t.isAnother(ctx) {
		t.suspect(r.older) // if only the server lags, the leader says so
	}
	t.forget(ctx, r.missing, r.top)
	t.touch.known()
}

// touch says whether a node has heard from a bucket for as long as the marks of removals are
// kept there: what neither it nor a mark tells of is lost then, and was not removed.
type touch struct {
	mu   sync.Mutex
	at   time.Duration // when it has heard last, by monotime; 0: never
	lost bool          // for a while it had not, and has not read the bucket since
}

const touchTime = bucket.MarkerTTL - time.Minute

// renew notes that the node has heard now.
func (t *touch) renew() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := monotime.Now()
	t.lost = t.lost || t.at != 0 && now-t.at > touchTime
	t.at = now
}

// known notes that the bucket was read, and compared.
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
