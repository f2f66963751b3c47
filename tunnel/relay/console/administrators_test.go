package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
)

// behind is one node's view of a memory that several share: what was there some time ago.
// It learns of a key when its own write to it is refused, and of any key at random, in no
// order. A write may be slow, or fail.
type behind struct {
	shared *memory

	mu     sync.Mutex
	values map[string][]byte
	revs   map[string]uint64
	frail  bool
}

func (b *behind) learn(key string) {
	value, rev, ok := b.shared.Get(key)
	b.mu.Lock()
	defer b.mu.Unlock()
	if !ok {
		delete(b.values, key)
		delete(b.revs, key)
	} else if rev > b.revs[key] {
		b.values[key], b.revs[key] = value, rev
	}
}

func (b *behind) Get(key string) ([]byte, uint64, bool) {
	if rand.N(4) == 0 {
		b.learn(key)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.values[key]
	return v, b.revs[key], ok
}

var errAway = errors.New("the store is away")

// pass lets others go first, and may lose the write.
func (b *behind) pass() error {
	for range rand.N(20) {
		runtime.Gosched()
	}
	if b.frail && rand.N(5) == 0 {
		return errAway
	}
	return nil
}

func (b *behind) Put(ctx context.Context, key string, value []byte, revision uint64) (bool, error) {
	if err := b.pass(); err != nil {
		return false, err
	}
	saved, err := b.shared.Put(ctx, key, value, revision)
	b.learn(key)
	return saved, err
}

func (b *behind) Remove(ctx context.Context, key string, revision uint64) (bool, error) {
	if err := b.pass(); err != nil {
		return false, err
	}
	removed, err := b.shared.Remove(ctx, key, revision)
	b.learn(key)
	return removed, err
}

func (b *behind) List(prefix string) map[string][]byte {
	for key := range b.shared.List(prefix) {
		if rand.N(2) == 0 {
			b.learn(key)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := map[string][]byte{}
	for key, v := range b.values {
		if len(key) >= len(prefix) && key[:len(prefix)] == prefix {
			found[key] = v
		}
	}
	return found
}

// nodes returns the consoles of n nodes with the given administrators.
func nodes(t *testing.T, n int, names ...string) (shared *memory, all []*Console, keepers []*behind) {
	t.Helper()
	shared = newMemory()
	for _, name := range names {
		data, _ := json.Marshal(record{Name: name, Role: RoleAdministrator})
		shared.Put(t.Context(), accountPrefix+name, data, 0)
	}
	for range n {
		keep := &behind{shared: shared, values: map[string][]byte{}, revs: map[string]uint64{}}
		for key := range shared.List("") {
			keep.learn(key)
		}
		c, err := New(Config{Relay: &fakeRelay{}, Keeper: keep, AdminToken: testToken, hashMemory: 64})
		if err != nil {
			t.Fatal(err)
		}
		all, keepers = append(all, c), append(keepers, keep)
	}
	return shared, all, keepers
}

func administrators(m *memory) (names []string) {
	for _, value := range m.List(accountPrefix) {
		var a record
		if json.Unmarshal(value, &a) == nil && a.administers() {
			names = append(names, a.Name)
		}
	}
	return names
}

// demote makes an account a viewer, as PATCH does.
func demote(ctx context.Context, c *Console, name string) error {
	return c.oneLess(ctx, name, func(a record, rev uint64) (bool, error) {
		a.Role = RoleViewer
		return c.put(ctx, accountPrefix+name, a, rev)
	})
}

// TestAdministratorsWhoRemoveEachOtherLeaveOne removes or demotes every administrator at
// the same time, at one node or at several.
func TestAdministratorsWhoRemoveEachOtherLeaveOne(t *testing.T) {
	for _, c := range []struct {
		nodes, admins int
		frail         bool
	}{{1, 2, false}, {2, 2, false}, {3, 3, false}, {2, 5, false}, {3, 3, true}} {
		t.Run(fmt.Sprintf("%d at %d nodes, frail %v", c.admins, c.nodes, c.frail), func(t *testing.T) {
			done := 0
			for range 80 {
				var names []string
				for i := range c.admins {
					names = append(names, fmt.Sprintf("admin-%d", i))
				}
				shared, all, keepers := nodes(t, c.nodes, names...)
				for _, k := range keepers {
					k.frail = c.frail
				}
				var group sync.WaitGroup
				for i, name := range names {
					at := all[i%len(all)]
					group.Go(func() {
						if i%2 == 0 {
							_ = at.removeAccount(t.Context(), name)
						} else {
							_ = demote(t.Context(), at, name)
						}
					})
				}
				group.Wait()
				left := administrators(shared)
				if len(left) == 0 {
					t.Fatal("nobody is left who could administer")
				}
				if len(left) < c.admins {
					done++
				}
			}
			if done == 0 {
				t.Error("nobody was ever removed: the test shows nothing")
			}
		})
	}
}

// TestAnAdministratorIsRemovedAfterANodeDied leaves an announcement whose node never made
// the change.
func TestAnAdministratorIsRemovedAfterANodeDied(t *testing.T) {
	for name, c := range map[string]struct {
		at   time.Time
		says error // at first; nil: it goes
	}{
		"a moment ago":               {time.Now(), errBusy},
		"an hour ago":                {time.Now().Add(-time.Hour), nil},
		"by a clock that is fast":    {time.Now().Add(1000 * time.Hour), nil},
		"before there was any clock": {time.Time{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			shared, all, _ := nodes(t, 1, "ann", "bob")
			_, rev, _ := shared.Get(accountPrefix + "ann")
			data, _ := json.Marshal(map[string]departure{"ann": {rev, c.at}})
			shared.Put(t.Context(), leavingKey, data, 0)
			all[0].cfg.Keeper = shared
			if err := demote(t.Context(), all[0], "bob"); !errors.Is(err, c.says) {
				t.Errorf("got %v, want %v", err, c.says)
			}
			if c.says == nil {
				// What the node that died may still send comes too late.
				if saved, _ := shared.Put(t.Context(), accountPrefix+"ann", []byte(`{}`), rev); saved {
					t.Error("the announced change was not made void")
				}
				if err := demote(t.Context(), all[0], "ann"); err == nil {
					t.Error("the last administrator was demoted")
				}
			}
		})
	}
}

// changedAtRemoval changes an account just before it is removed, as a login does.
type changedAtRemoval struct {
	*memory
	once sync.Once
}

func (c *changedAtRemoval) Remove(ctx context.Context, key string, revision uint64) (bool, error) {
	c.once.Do(func() {
		value, rev, _ := c.Get(key)
		c.Put(ctx, key, value, rev)
	})
	return c.memory.Remove(ctx, key, revision)
}

func TestAnAccountThatSignsInWhileItIsRemovedIsRemoved(t *testing.T) {
	shared, all, _ := nodes(t, 1, "ann", "bob")
	all[0].cfg.Keeper = &changedAtRemoval{memory: shared}
	if err := all[0].removeAccount(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	if _, _, ok := shared.Get(accountPrefix + "bob"); ok {
		t.Error("it was said to be removed, and is still there")
	}
}
