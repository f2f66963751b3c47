package table

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
)

// mendRounds is how often the store is asked before what it has lost is written again:
// by then every node has found out what it knows of that.
const mendRounds = 3

// suspects are what a store seems to have lost.
type suspects struct {
	revisions map[string]uint64 // by key
	rounds    int               // since the first of them
}

// mend writes to the store again what it has lost and this node knows, as a revocation:
// all up to the revision known was acknowledged, and the store's newest is lower.
func (t *Table[T]) mend(ctx context.Context, newest, known uint64) {
	s := &t.suspects
	if known > newest && !t.set.living(t.name) {
		if s.revisions == nil {
			s.revisions = make(map[string]uint64)
		}
		maps.Copy(s.revisions, t.memory.Between(newest, known))
	}
	if len(s.revisions) == 0 {
		return
	}
	if s.rounds++; s.rounds < mendRounds || !t.set.isOwn(ctx) {
		return
	}
	// In their order, what is written of a key is older than what another node knows that
	// was written to it later, and writes again after this one.
	keys := slices.SortedFunc(maps.Keys(s.revisions), func(a, b string) int { return cmp.Compare(s.revisions[a], s.revisions[b]) })
	for _, key := range keys {
		if err := t.mendOne(ctx, key, s.revisions[key]); err != nil {
			t.log.Debug("what the store has lost cannot be written again yet", "table", t.name, "key", key, "error", err)
			return // the next round goes on
		}
		delete(s.revisions, key)
	}
	s.rounds = 0
}

// mendOne writes what is known of a key, if that is of a revision still.
func (t *Table[T]) mendOne(ctx context.Context, key string, rev uint64) error {
	v, known, exists := t.memory.Get(key)
	if known != rev {
		return nil
	}
	if !exists {
		w, ok, err := t.latest(ctx, key)
		if err != nil || !ok || w.Removed {
			return err
		}
		if done, err := t.removeLost(ctx, key, rev); err != nil || !done {
			return err
		}
		t.set.notify(notice{Table: t.name, Key: key, Revision: rev, Removed: true}, nil)
		return nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	next, done, err := t.overLost(ctx, key, data, rev)
	if err != nil || !done {
		return err
	}
	t.memory.Set(key, v, next)
	t.set.notify(notice{Table: t.name, Key: key, Revision: next}, data)
	return nil
}
