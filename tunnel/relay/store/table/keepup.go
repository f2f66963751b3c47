package table

import (
	"context"
	"encoding/json"
	"fmt"

	"adit/tunnel/relay/store/leader"
)

// keepUp reads what the bucket had when it was asked before and no watch has
// brought yet; the first time what it has now, since the bucket was read. Without
// a leader there is nothing newer.
func (t *Table[T]) keepUp(ctx context.Context) {
	newest, err := t.leader.Last(ctx)
	if err != nil {
		return
	}
	due := t.newest
	first := due == 0
	if first {
		due = newest
	}
	t.newest = newest
	seen := t.seen.Load()
	if seen >= due {
		return
	}
	read := 0
	for rev := seen + 1; rev <= due; read++ {
		w, ok, err := t.leader.Next(ctx, rev)
		if err != nil {
			return
		}
		if !ok {
			break
		}
		if err := t.takeWritten(w); err != nil {
			t.log.Error("store holds a value that does not parse", "table", t.name, "error", err)
		}
		rev = w.Rev + 1
	}
	for {
		seen = t.seen.Load()
		if seen >= due {
			return // the watch came meanwhile
		}
		if t.seen.CompareAndSwap(seen, due) {
			break
		}
	}
	if first || read == 0 { // a write of this moment; or what was written last is over
		return
	}
	t.log.Warn("a server of the store lags behind the others; what it lacks was read from their leader", "table", t.name, "changes", read)
	t.refollow()
}

// takeWritten takes a message of the bucket's leader.
func (t *Table[T]) takeWritten(w leader.Written) error {
	if w.Removed {
		t.memory.Remove(w.Key, w.Rev)
		return nil
	}
	var v T
	if err := json.Unmarshal(w.Value, &v); err != nil {
		return fmt.Errorf("read %s %q: %w", t.name, w.Key, err)
	}
	t.memory.Set(w.Key, v, w.Rev)
	return nil
}

// told takes what another node told of.
func (t *Table[T]) told(c Change) {
	if c.Removed {
		t.memory.Remove(c.Key, c.Revision)
		return
	}
	var v T
	if err := json.Unmarshal(c.Value, &v); err != nil {
		t.log.Warn("another node told of a value that does not parse", "table", t.name, "error", err)
		return
	}
	t.memory.Set(c.Key, v, c.Revision)
}
