package table

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// mendRounds is how often the store is asked before what it has lost is written again:
// by then every node has found out what it knows of that.
const mendRounds = 3

// suspects are what a store seems to have lost.
type suspects struct {
	mu        sync.Mutex
	revisions map[string]uint64 // by key
	rounds    int               // since the first of them
}

func (s *suspects) add(revisions map[string]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revisions == nil {
		s.revisions = make(map[string]uint64)
	}
	maps.Copy(s.revisions, revisions)
}

// due are those that all nodes have found out about by now, by key, and the keys in the
// order in which they were written.
func (s *suspects) due() (keys []string, revisions map[string]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.revisions) == 0 {
		return nil, nil
	}
	if s.rounds++; s.rounds < mendRounds {
		return nil, nil
	}
	revisions = maps.Clone(s.revisions)
	return slices.SortedFunc(maps.Keys(revisions), func(a, b string) int { return cmp.Compare(revisions[a], revisions[b]) }), revisions
}

func (s *suspects) done(key string, rev uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.revisions[key] == rev {
		delete(s.revisions, key)
	}
	if len(s.revisions) == 0 {
		s.rounds = 0
	}
}

// mend writes to the store again what it has lost and this node knows, as a revocation:
// all up to the revision known was acknowledged, and the store's newest is lower. The
// oldest goes first, so that what another node knows to be newer is written after it.
func (t *Table[T]) mend(ctx context.Context, newest, known uint64) {
	if t.set.living(t.name) {
		return
	}
	if known > newest {
		t.suspects.add(t.memory.Between(newest, known))
	}
	keys, revisions := t.suspects.due()
	if len(keys) == 0 || !t.set.isOwn(ctx) {
		return
	}
	for _, key := range keys {
		if err := t.mendOne(ctx, key, revisions[key]); err != nil {
			t.log.Debug("what the store has lost cannot be written again yet", "table", t.name, "key", key, "error", err)
			return // the next round goes on
		}
		t.suspects.done(key, revisions[key])
	}
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
