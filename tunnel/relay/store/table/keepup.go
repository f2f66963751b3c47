package table

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"adit/tunnel/relay/store/leader"
)

// How long CatchUp waits for the watch, and how often it checks.
const (
	catchUpGrace = 500 * time.Millisecond
	catchUpEvery = 2 * time.Millisecond
)

// keepUp reads what the bucket contained at the previous call and no watch has brought since.
// The first time, it reads what has been written since the bucket was read. Without a leader
// there is nothing newer. It returns an error if the bucket could not be asked.
func (t *Table[T]) keepUp(ctx context.Context) error {
	known, messages := t.memory.Newest(), t.memory.Messages(t.asked.Add(-touchTime))
	seen := t.seen.Load() // before the leader is asked: the watch may bring more than it reports
	state, err := t.leader.State(ctx)
	if err != nil {
		return err
	}
	t.asked = state.Asked
	newest := state.Last
	t.forgetLost(newest, known)
	if newest < t.newest && t.isAnother(ctx) {
		return errAnother
	}
	t.touch.renew()
	if seen > newest { // lost writes: nothing is known of those that replace them
		t.seen.CompareAndSwap(seen, newest)
	}
	t.count(messages, state.Messages)
	t.mend(ctx, newest, known)
	due := min(t.newest, newest)
	first := due == 0
	if first {
		due = newest
	}
	t.newest = newest
	if seen = t.seen.Load(); seen >= due {
		return nil
	}
	read := 0
	for rev := seen + 1; rev <= due; read++ {
		w, ok, err := t.leader.Next(ctx, rev)
		if err != nil {
			return err
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
			return nil // the watch brought them meanwhile
		}
		if t.seen.CompareAndSwap(seen, due) {
			break
		}
	}
	if first || read == 0 { // written at this very moment, or the last writes have expired
		return nil
	}
	t.log.Warn("a server of the store lags behind the others; what it lacks was read from their leader", "table", t.name, "changes", read)
	t.refollow()
	return nil
}

// count has the bucket read again if it has fewer messages than are known, twice in a row.
// Neither a watch nor revisions show what somebody has purged from it. Messages that are still
// missing after that, such as markers of removals, are not looked for again.
func (t *Table[T]) count(known, messages uint64) {
	lacks := known - min(known, messages)
	before := t.fewer
	t.given = min(t.given, lacks)
	t.fewer = lacks > t.given
	if before && t.fewer && !t.set.living(t.name) && t.suspects.none() {
		t.given = lacks
		t.refollow()
	}
}

// CatchUp returns when everything written up to a revision is in memory. What the watch does
// not bring in time is read from the bucket's leader.
func (t *Table[T]) CatchUp(ctx context.Context, rev uint64) error {
	tick := time.NewTicker(catchUpEvery)
	defer tick.Stop()
	for late := time.After(catchUpGrace); t.seen.Load() < rev; {
		select {
		case <-tick.C:
		case <-late:
			return t.catchUp(ctx, rev)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// catchUp reads from the bucket's leader what the watch has not yet brought, up to a revision.
func (t *Table[T]) catchUp(ctx context.Context, rev uint64) error {
	for next := t.seen.Load() + 1; next <= rev; {
		w, ok, err := t.leader.Next(ctx, next)
		if err != nil || !ok {
			return err
		}
		if err := t.takeWritten(w); err != nil {
			t.log.Error("store holds a value that does not parse", "table", t.name, "error", err)
		}
		next = w.Rev + 1
	}
	return nil
}

// takeWritten takes in a message from the bucket's leader.
func (t *Table[T]) takeWritten(w leader.Written) error {
	return t.takeDated(Change{Key: w.Key, Revision: w.Rev, Removed: w.Removed, Value: w.Value}, w.Time)
}

// takeDated takes in what the bucket has under one key, and when that was written. If a
// different write with the same revision is known, the bucket has lost that one.
func (t *Table[T]) takeDated(c Change, written time.Time) error {
	err := t.takeChange(c)
	if !t.memory.Date(c.Key, c.Revision, written) {
		t.suspect(map[string]uint64{c.Key: c.Revision})
	}
	return err
}

// told takes in a write that another node has reported.
func (t *Table[T]) told(c Change) {
	if err := t.takeChange(c); err != nil {
		t.log.Warn("another node told of a value that does not parse", "error", err)
	}
}

// takeChange takes in the current state of one key.
func (t *Table[T]) takeChange(c Change) error {
	if c.Removed {
		t.memory.Remove(c.Key, c.Revision)
		return nil
	}
	var v T
	if err := json.Unmarshal(c.Value, &v); err != nil {
		return fmt.Errorf("read %s %q: %w", t.name, c.Key, err)
	}
	t.memory.Set(c.Key, v, c.Revision)
	return nil
}
