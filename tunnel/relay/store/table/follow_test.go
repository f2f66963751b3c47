package table

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/relay/store/replica"
)

// TestRereadForgetsWhatIsGone has a table read its bucket again after a key has disappeared
// without the watch noticing.
func TestRereadForgetsWhatIsGone(t *testing.T) {
	tab := begin(t).table(t, "policies")
	for _, key := range []string{"domain.a", "domain.b", "domain.c"} {
		put(t, tab, key, "{}")
	}
	told := make(chan string, 10)
	tab.OnValues(func(target string, _ string, exists bool) {
		if !exists {
			told <- target
		}
	})
	missing := tab.memory.Revisions()
	tab.forget(t.Context(), map[string]uint64{"domain.a": missing["domain.a"], "domain.b": missing["domain.b"] - 1, "domain.c": missing["domain.c"]}, missing["domain.b"])
	if got := <-told; got != "domain.a" || len(told) != 0 {
		t.Errorf("forgot %s and %d more", got, len(told))
	}
	tab.refollow()
	eventually(t, "all is back", func() bool { return len(tab.List()) == 3 })
}

// TestNewestValueIsForgottenWhenItIsGone has a node come back after so long that nothing shows
// the removal any more, and it is the newest value that was removed.
func TestNewestValueIsForgottenWhenItIsGone(t *testing.T) {
	tab := begin(t).table(t, "clients")
	put(t, tab, "kept", "active")
	for _, name := range []string{"lost", "lagging", "unanswered"} {
		put(t, tab, name, "active")
		purge(t, tab, name)
	}
	tab.memory.Set("newer", "active", 1000) // than all that the leader ever had: it lacks writes itself
	var heard atomic.Bool                   // of the end of lost
	tab.OnChange(func(name, _ string, exists bool) {
		if name == "lost" && !exists {
			heard.Store(true)
		}
	})
	ask := tab.leads
	if there, err := ask(t.Context(), "kept"); !there || err != nil {
		t.Errorf("the leader has a client: %t, %v", there, err)
	}
	tab.leads = func(ctx context.Context, key string) (bool, error) {
		switch key {
		case "lagging":
			return true, nil
		case "unanswered":
			return false, errors.New("no answer")
		}
		return ask(ctx, key)
	}
	tab.refollow()
	eventually(t, "a client that the bucket does not have is forgotten", heard.Load)
	if _, _, ok := tab.Get("lost"); ok {
		t.Error("all were told that a client is gone, and it is there")
	}
	for _, name := range []string{"kept", "unanswered", "lagging", "newer"} {
		if _, _, ok := tab.Get(name); !ok {
			t.Errorf("the client %s was forgotten", name)
		}
	}
}

// purge removes what is under a key from a table's bucket, so that nothing tells of it.
func purge(t *testing.T, tab *Table[string], key string) {
	t.Helper()
	stream, err := tab.js.Stream(t.Context(), "KV_"+tab.kv.Bucket())
	if err == nil {
		err = stream.Purge(t.Context(), jetstream.WithPurgeSubject("$KV."+tab.kv.Bucket()+"."+key))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOpenWaitsForABucket has a cluster that has created a bucket but does not answer for it
// yet, having just started.
func TestOpenWaitsForABucket(t *testing.T) {
	n := begin(t)
	put(t, n.table(t, "policies"), "domain.a", "{}")
	tab := over(t.Context(), t, n, "policies", func(kv jetstream.KeyValue) jetstream.KeyValue { return &natstest.Unled{KeyValue: kv} })
	if _, _, ok := tab.Get("domain.a"); !ok {
		t.Error("the policy was not read")
	}
}

// leaving is a bucket whose first watch ends before it has brought anything, as
// one does whose server goes.
type leaving struct {
	jetstream.KeyValue
	asked atomic.Int32
}

func (l *leaving) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := l.KeyValue.WatchAll(ctx, opts...)
	if err == nil && l.asked.Add(1) == 1 {
		ended := make(chan jetstream.KeyValueEntry)
		close(ended)
		return endedWatch{w, ended}, nil
	}
	return w, err
}

type endedWatch struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (w endedWatch) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

// TestOpenReadsAgainWhenAWatchEnds stops the server that a bucket is being read from.
func TestOpenReadsAgainWhenAWatchEnds(t *testing.T) {
	n := begin(t)
	put(t, n.table(t, "policies"), "domain.a", "{}")
	leaves := &leaving{}
	tab := over(t.Context(), t, n, "policies", func(kv jetstream.KeyValue) jetstream.KeyValue { leaves.KeyValue = kv; return leaves })
	if _, _, ok := tab.Get("domain.a"); !ok || leaves.asked.Load() != 2 {
		t.Errorf("the policy was read: %v, in %d watches", ok, leaves.asked.Load())
	}
}

// miscounted is a bucket whose server has counted more than there is: the end of
// what it has is never told.
type miscounted struct {
	jetstream.KeyValue
	asked atomic.Int32
	loses bool // the first watch brings nothing at all
}

func (m *miscounted) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := m.KeyValue.WatchAll(ctx, opts...)
	if err != nil || m.asked.Add(1) > 1 && m.loses {
		return w, err
	}
	updates := make(chan jetstream.KeyValueEntry, 10)
	go func() {
		for e := range w.Updates() {
			if e != nil && !m.loses {
				updates <- e
			}
		}
	}()
	return endedWatch{w, updates}, nil
}

// TestABucketIsReadThoughItsEndIsNotTold opens a store on servers that count wrongly.
func TestABucketIsReadThoughItsEndIsNotTold(t *testing.T) {
	t.Parallel() // most of it is waiting
	n := begin(t)
	put(t, n.table(t, "policies"), "domain.a", "{}")
	for _, c := range []struct {
		loses   bool
		watches int32
	}{{false, 1}, {true, 2}} {
		bad := &miscounted{loses: c.loses}
		ctx, cancel := context.WithTimeout(t.Context(), n.engine.Patience())
		tab := over(ctx, t, n, "policies", func(kv jetstream.KeyValue) jetstream.KeyValue { bad.KeyValue = kv; return bad })
		cancel()
		if _, _, ok := tab.Get("domain.a"); !ok || bad.asked.Load() != c.watches {
			t.Errorf("loses %t: the policy was read: %v, in %d watches", c.loses, ok, bad.asked.Load())
		}
	}
}

// found is what a bucket has under one key.
type found struct {
	jetstream.KeyValueEntry
	rev uint64
}

func (found) Key() string                     { return "c_1" }
func (found) Operation() jetstream.KeyValueOp { return jetstream.KeyValuePut }
func (k found) Revision() uint64              { return k.rev }
func (found) Value() []byte                   { v, _ := json.Marshal("c_1"); return v }
func (found) Created() time.Time              { return time.Time{} }

func TestOneKeyDoesNotTellHowFarTheWatchIs(t *testing.T) {
	table := &Table[string]{name: "usage", memory: replica.New[string](ownMemory)}
	if err := table.see(found{rev: 90}); err != nil {
		t.Fatal(err)
	}
	if err := table.take(found{rev: 100}); err != nil {
		t.Fatal(err)
	}
	if !table.knows(notice{Key: "c_2", Revision: 90}) || table.knows(notice{Key: "c_2", Revision: 95}) {
		t.Error("a write of another key between what the watch brought and what was read counts as known")
	}
}

// TestAnotherBucketIsNotTakenForAnEmptiedOne has the servers lose a bucket, and somebody
// create one with the same name. What a node has in memory is all that is left of the old one.
func TestAnotherBucketIsNotTakenForAnEmptiedOne(t *testing.T) {
	n := begin(t, natstest.Start(t).URL())
	tab := n.table(t, "policies")
	put(t, tab, "domain.a", "asks for a password")
	tab.made = tab.made.Add(-time.Hour)
	if err := tab.js.DeleteKeyValue(t.Context(), tab.kv.Bucket()); err != nil {
		t.Fatal(err)
	}
	other, err := n.engine.Bucket(t.Context(), "policies")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"domain.b", "domain.c"} {
		if _, err := other.PutString(t.Context(), key, `"another's"`); err != nil {
			t.Fatal(err)
		}
	}
	tab.refollow()
	eventually(t, "the other is read", func() bool { _, _, ok := tab.Get("domain.c"); return ok })
	tab.refollow()
	eventually(t, "it is read again", func() bool { return len(tab.stale) == 0 })
	if _, _, ok := tab.Get("domain.a"); !ok {
		t.Error("a policy was forgotten with its bucket")
	}
}
