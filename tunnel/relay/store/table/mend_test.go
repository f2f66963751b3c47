package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/natstest"
)

// keepUps has tables ask their leaders as often as it takes for what is lost to be
// written again.
func keepUps(t *testing.T, tables ...*Table[string]) {
	t.Helper()
	for range 2 * mendRounds {
		for _, tab := range tables {
			if err := tab.keepUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// knows has a table know of a write that the store does not have, and when it was made.
func knows(tab *Table[string], key, value string, rev uint64, ago time.Duration) {
	data, _ := json.Marshal(value)
	tab.told(Change{Key: key, Revision: rev, Value: data, Removed: value == ""})
	tab.memory.Date(key, rev, time.Now().Add(-ago))
}

// TestWhatCannotBeWrittenAgainKeepsNothingElseWaiting uses a value that is now larger than the
// store accepts. The failure is logged once.
func TestWhatCannotBeWrittenAgainKeepsNothingElseWaiting(t *testing.T) {
	url := natstest.Start(t).URL()
	n, log := begin(t, url), bytes.Buffer{}
	n.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	tab := n.table(t, "policies")
	put(t, tab, "kept", "kept")
	knows(tab, "large", strings.Repeat("a", 300<<10), 10, time.Hour)
	knows(tab, "revoked", "lost", 20, time.Hour)
	keepUps(t, tab)
	keepUps(t, tab)
	is(t, begin(t, url).table(t, "policies"), "revoked", "lost")
	n.end()
	failed, replaced := strings.Count(log.String(), "cannot be written again"), strings.Count(log.String(), "it is replaced")
	if failed != 1 || replaced != 1 {
		t.Errorf("said %d times that it cannot be, and %d that it is replaced, want once for each:\n%s", failed, replaced, log.String())
	}
}

// TestWhatAnotherNodeWritesAgainFirstIsInConflict checks that such a conflict is not logged as
// a failure.
func TestWhatAnotherNodeWritesAgainFirstIsInConflict(t *testing.T) {
	tab := begin(t, natstest.Start(t).URL()).table(t, "policies")
	put(t, tab, "a", "there")
	for _, v := range []written{{key: "a", value: []byte(`"again"`)}, {key: "a", removed: true}} {
		if err := tab.rewrite(t.Context(), v, 0, 50); !bucket.IsConflict(err) {
			t.Errorf("%+v: got %v, want a conflict", v, err)
		}
	}
	is(t, tab, "a", "there")
}

// TestWhatIsWrittenAfterALossStays although it has a lower revision than what was lost: it was
// written at a node that had just started and did not know of the lost write.
func TestWhatIsWrittenAfterALossStays(t *testing.T) {
	url := natstest.Start(t).URL()
	one, other, anew := begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies")
	for _, key := range []string{"changed", "removed", "survived"} {
		put(t, one, key, "before")
	}
	for _, tab := range []*Table[string]{one, other} {
		for _, key := range []string{"changed", "removed", "survived", "added"} {
			is(t, tab, key, map[bool]string{true: "before"}[key != "added"])
			knows(tab, key, "lost", 50, time.Minute)
		}
		knows(tab, "survived", "lost", 51, -time.Minute) // that is after what there is
	}
	put(t, anew, "changed", "after")
	put(t, anew, "added", "after")
	if err := anew.Drop(t.Context(), "removed"); err != nil {
		t.Fatal(err)
	}
	keepUps(t, one, other)
	for _, tab := range []*Table[string]{one, other, anew, begin(t, url).table(t, "policies")} {
		is(t, tab, "changed", "after")
		is(t, tab, "added", "after")
		is(t, tab, "removed", "")
		is(t, tab, "survived", "lost")
	}
}

// TestAChangeOfWhatWasLostSeesWhatCameAfter: a change based on the lost value would undo it.
func TestAChangeOfWhatWasLostSeesWhatCameAfter(t *testing.T) {
	url := natstest.Start(t).URL()
	one, anew := begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies")
	put(t, one, "a", "before")
	is(t, anew, "a", "before")
	knows(one, "a", "lost", 50, time.Minute)
	put(t, anew, "a", "revoked")
	if _, err := one.Change(t.Context(), "a", func(v string, _ bool) (string, error) { return v + ", scope", nil }); err != nil {
		t.Fatal(err)
	}
	for _, tab := range []*Table[string]{one, anew} {
		is(t, tab, "a", "revoked, scope")
	}
}

// TestTheNewestOfWhatWasLostIsWrittenAgain, whichever node is first, and even if revisions
// coincide.
func TestTheNewestOfWhatWasLostIsWrittenAgain(t *testing.T) {
	url := natstest.Start(t).URL()
	one, other := begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies")
	put(t, one, "kept", "kept")
	knows(one, "tie", "older", 50, time.Hour)
	knows(other, "tie", "newest", 51, time.Minute)
	knows(one, "high", "older", 52, time.Hour)
	knows(other, "high", "newest", 54, time.Minute)
	knows(one, "end", "end", 60, time.Minute)
	for range mendRounds - 1 {
		for _, tab := range []*Table[string]{one, other} {
			if err := tab.keepUp(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	keepUps(t, one)
	keepUps(t, other, one)
	for _, tab := range []*Table[string]{one, other, begin(t, url).table(t, "policies")} {
		for _, key := range []string{"tie", "high"} {
			is(t, tab, key, "newest")
		}
		is(t, tab, "end", "end")
	}
}

// TestTwoWritesOfOneRevisionAreToldApart: what one node knows was lost, and the store has
// another write in its place, which all other nodes have.
func TestTwoWritesOfOneRevisionAreToldApart(t *testing.T) {
	url := natstest.Start(t).URL()
	one, anew := begin(t, url).table(t, "policies"), begin(t, url).table(t, "policies")
	put(t, one, "kept", "kept")
	knows(one, "a", "lost", 2, time.Hour)
	knows(one, "b", "lost", 3, time.Hour)
	put(t, anew, "a", "after")
	keepUps(t, one)
	for _, tab := range []*Table[string]{one, anew, begin(t, url).table(t, "policies")} {
		is(t, tab, "a", "after")
		is(t, tab, "b", "lost")
	}
}

// TestWhatWasPurgedIsWrittenAgain although no watch reports the purge and the bucket's newest
// number stays the same.
func TestWhatWasPurgedIsWrittenAgain(t *testing.T) {
	for name, filter := range map[string][]jetstream.StreamPurgeOpt{
		"all":                            nil,
		"fewer than were removed lately": {jetstream.WithPurgeSubject("$KV.adit_policies.a")},
	} {
		t.Run(name, func(t *testing.T) {
			url := natstest.Start(t).URL()
			tab := begin(t, url).table(t, "policies")
			for _, key := range []string{"a", "b", "removed", "gone"} {
				put(t, tab, key, "there")
			}
			for _, key := range []string{"removed", "gone"} {
				if err := tab.Drop(t.Context(), key); err != nil {
					t.Fatal(err)
				}
			}
			keepUps(t, tab)
			stream, err := tab.js.Stream(t.Context(), "KV_"+tab.kv.Bucket())
			if err != nil {
				t.Fatal(err)
			}
			if err := stream.Purge(t.Context(), filter...); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is missed", func() bool {
				if err := tab.keepUp(t.Context()); err != nil {
					t.Fatal(err)
				}
				return !tab.suspects.none()
			})
			keepUps(t, tab)
			later := begin(t, url).table(t, "policies")
			for _, key := range []string{"a", "b"} {
				is(t, later, key, "there")
				is(t, tab, key, "there")
			}
			is(t, later, "removed", "")
		})
	}
}

// counted is a bucket that counts how often it is read.
type counted struct {
	jetstream.KeyValue
	reads atomic.Int32
}

func (c *counted) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	c.reads.Add(1)
	return c.KeyValue.WatchAll(ctx, opts...)
}

// TestWhatIsWrittenAgainIsNoLag checks that the server of this node does not count as lagging:
// its watch brings the write, and so more than there was when the leader was asked.
func TestWhatIsWrittenAgainIsNoLag(t *testing.T) {
	kv := new(counted)
	tab := over(t.Context(), t, begin(t, natstest.Start(t).URL()), "policies", func(of jetstream.KeyValue) jetstream.KeyValue {
		kv.KeyValue = of
		return kv
	})
	put(t, tab, "kept", "there")
	for i := range 20 {
		knows(tab, fmt.Sprint("lost", i), "lost", uint64(50+i), time.Hour)
	}
	var last uint64
	for range 4 * mendRounds {
		if err := tab.keepUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the watch has brought all, as it does between two rounds", func() bool {
			var err error
			last, err = tab.leader.Last(t.Context())
			return err == nil && tab.seen.Load() >= last
		})
	}
	if last < 70 {
		t.Fatalf("the store has come to %d", last)
	}
	if n := kv.reads.Load(); n != 1 {
		t.Errorf("the bucket was read %d times, want once", n)
	}
}

// TestAMarkThatWasPurgedIsNotMissedForLong: reading the bucket again does not bring it back.
func TestAMarkThatWasPurgedIsNotMissedForLong(t *testing.T) {
	kv := new(counted)
	tab := over(t.Context(), t, begin(t, natstest.Start(t).URL()), "policies", func(of jetstream.KeyValue) jetstream.KeyValue {
		kv.KeyValue = of
		return kv
	})
	for _, key := range []string{"kept", "removed"} {
		put(t, tab, key, "there")
	}
	if err := tab.Drop(t.Context(), "removed"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mark is known", func() bool { return tab.memory.Newest() == 3 })
	keepUps(t, tab)
	if n := kv.reads.Load(); n != 1 {
		t.Fatalf("the bucket was read %d times where nothing is missing, want once", n)
	}
	purge(t, tab, "removed")
	for n := int32(1); n < 10; n++ {
		keepUps(t, tab)
		if n == 1 {
			eventually(t, "the bucket is read anew", func() bool { return kv.reads.Load() == 2 })
		}
	}
	if n := kv.reads.Load(); n != 2 {
		t.Errorf("the bucket was read %d times, want twice", n)
	}
}
