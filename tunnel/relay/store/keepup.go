package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"adit/tunnel/relay/store/leader"
)

// keepUpEvery is how often a node asks whether its watches have brought all there
// is.
const keepUpEvery = 5 * time.Second

// keepUp reads from the buckets' leaders what the watches do not bring, now and
// until life ends. Any server that keeps a bucket serves watches of it, and one
// that lost its way in a crash serves old values for minutes and does not know.
func (s *Store) keepUp(life context.Context) {
	tick := time.NewTicker(keepUpEvery)
	defer tick.Stop()
	for {
		for _, t := range s.followed() {
			t.keepUp(life)
		}
		select {
		case <-tick.C:
		case <-life.Done():
			return
		}
	}
}

func (s *Store) followed() []followed {
	s.loading.Lock()
	defer s.loading.Unlock()
	list := make([]followed, 0, len(s.byName))
	for _, t := range s.byName {
		list = append(list, t)
	}
	return list
}

// keepUp reads what the bucket had when it was asked before and no watch has
// brought yet; the first time what it has now, since the bucket was read. Without
// a leader there is nothing newer.
func (t *table[T]) keepUp(ctx context.Context) {
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
func (t *table[T]) takeWritten(w leader.Written) error {
	if w.Removed {
		t.unset(w.Key, w.Rev)
		return nil
	}
	var v T
	if err := json.Unmarshal(w.Value, &v); err != nil {
		return fmt.Errorf("read %s %q: %w", t.name, w.Key, err)
	}
	t.set(w.Key, v, w.Rev)
	return nil
}
