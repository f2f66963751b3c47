package table

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/replica"
)

// mendRounds is how often the store is checked before lost writes are made again. By then
// every node has found out what it knows of them. A node that does not know when the lost
// value was written waits as long again, to let nodes that do go first.
const mendRounds = 3

// mendedHeader is the header, in a message that was written again, with the revision that was
// lost.
const mendedHeader = "Adit-Mended"

// suspect is a value or removal that the store seems to have lost.
type suspect[T any] struct {
	replica.Entry[T]
	key    string
	rounds int // checks since it was found
	failed int // failed attempts to write it again
}

// suspects holds the suspects of a table.
type suspects[T any] struct {
	mu    sync.Mutex
	byKey map[string]*suspect[T]
}

func (s *suspects[T]) add(key string, e replica.Entry[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byKey == nil {
		s.byKey = make(map[string]*suspect[T])
	}
	if old := s.byKey[key]; old == nil || old.Revision < e.Revision {
		s.byKey[key] = &suspect[T]{Entry: e, key: key}
	}
}

func (s *suspects[T]) none() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey) == 0
}

// due returns the suspects that all nodes have had time to find: those without failed attempts
// first, and among them the oldest first.
func (s *suspects[T]) due() (list []suspect[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.byKey {
		v.rounds++
		if v.rounds >= 2*mendRounds || v.rounds >= mendRounds && !v.Written.IsZero() {
			list = append(list, *v)
		}
	}
	slices.SortFunc(list, func(a, b suspect[T]) int {
		return cmp.Or(cmp.Compare(a.failed, b.failed), cmp.Compare(a.Revision, b.Revision))
	})
	return list
}

// tried records the result of an attempt to write a suspect again.
func (s *suspects[T]) tried(of suspect[T], err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch now := s.byKey[of.key]; {
	case now == nil || now.Revision != of.Revision:
	case err == nil:
		delete(s.byKey, of.key)
	default:
		now.failed++
	}
}

// suspect records that the store may have lost the given revisions, by key.
func (t *Table[T]) suspect(revisions map[string]uint64) {
	if t.set.living(t.name) {
		return
	}
	for key, rev := range revisions {
		if e, ok := t.memory.Entry(key); ok && e.Revision == rev {
			t.suspects.add(key, e)
		}
	}
}

// mend writes again what the store has lost and this node knows, for example a revocation.
// Everything up to the revision known was acknowledged, and newest is the store's newest
// revision.
func (t *Table[T]) mend(ctx context.Context, newest, known uint64) {
	if t.set.living(t.name) {
		return
	}
	if known > newest {
		t.suspect(t.memory.Between(newest, known))
	}
	due := t.suspects.due()
	if len(due) == 0 || !t.set.isOwn(ctx) {
		return
	}
	var failed error
	for _, s := range due {
		err := t.mendOne(ctx, s.key, s.Entry)
		t.suspects.tried(s, err)
		if err == nil {
			continue
		}
		t.log.Debug("what the store has lost cannot be written again yet", "table", t.name, "key", s.key, "error", err)
		if bucket.IsAway(err) || ctx.Err() != nil {
			return // the next round begins with the others
		}
		if !bucket.IsConflict(err) { // otherwise another node was first
			failed = err
		}
	}
	if failed != nil && !t.unmended {
		t.log.Warn("the store has lost writes that cannot be written again; it is tried again", "table", t.name, "error", failed)
	}
	t.unmended = failed != nil
}

// forgetLost forgets lost writes of a table whose values are constantly renewed. Their
// replacements have lower revisions and would not be accepted otherwise.
func (t *Table[T]) forgetLost(newest, known uint64) {
	if known > newest && t.set.living(t.name) {
		t.memory.Forget(t.memory.Between(newest, known))
		t.refollow()
	}
}

// mendOne writes again what is known of a key, if the store has lost it. A value that another
// node has written again counts as older if the revision that it replaces was older.
func (t *Table[T]) mendOne(ctx context.Context, key string, e replica.Entry[T]) error {
	base, lost, err := t.lost(ctx, key, e)
	if err != nil || !lost {
		return err
	}
	var data []byte
	if !e.Removed {
		if data, err = json.Marshal(e.Value); err != nil {
			return err
		}
	}
	if err := t.rewrite(ctx, written{key, data, e.Removed}, base, e.Revision); err != nil {
		return err
	}
	t.replaced(key, e.Revision)
	return nil
}

// written is the state of a key.
type written struct {
	key     string
	value   []byte
	removed bool
}

// rewrite writes what nodes may already know under another revision, in place of the revision
// base, so that all accept it under a higher one. mended is the revision that was lost; 0
// means none.
func (t *Table[T]) rewrite(ctx context.Context, v written, base, mended uint64) error {
	m := t.message(v)
	if mended > 0 {
		m.Header.Set(mendedHeader, strconv.FormatUint(mended, 10))
	}
	rev, err := t.publish(ctx, m, base)
	if err != nil {
		return err
	}
	if err := t.takeChange(Change{Key: v.key, Revision: rev, Removed: v.removed, Value: v.value}); err != nil {
		return err
	}
	t.set.notify(notice{Table: t.name, Key: v.key, Revision: rev, Removed: v.removed}, v.value)
	return nil
}
