package table

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/relay/store/replica"
)

// laggingReads is a bucket as a server serves it that lags: also what is read of it, and
// what the library's Create finds out, is of before.
type laggingReads struct{ *lagging }

func (b laggingReads) Get(_ context.Context, key string) (jetstream.KeyValueEntry, error) {
	for _, e := range b.had {
		if e.Key() == key {
			return e, nil
		}
	}
	return nil, jetstream.ErrKeyNotFound
}

func (b laggingReads) Create(ctx context.Context, key string, value []byte, _ ...jetstream.KVCreateOpt) (uint64, error) {
	rev, err := b.Update(ctx, key, value, 0)
	if err != nil {
		return 0, jetstream.ErrKeyExists // and no marker is known that could be replaced
	}
	return rev, nil
}

// TestARemovalStaysThoughTheServerLags has a node that has seen a removal connect to a server
// that does not know of it, and write there.
func TestARemovalStaysThoughTheServerLags(t *testing.T) {
	url := natstest.Start(t).URL()
	a, b := begin(t, url), begin(t, url)
	there := a.table(t, "policies")
	for _, target := range []string{"domain.gone", "domain.again", "domain.told"} {
		put(t, there, target, "old")
	}
	tab := b.table(t, "policies")
	lags := laggingReads{newLagging(t, tab.kv)}
	_, rev, _ := tab.Get("domain.told")
	for _, target := range []string{"domain.gone", "domain.again"} {
		if err := there.Drop(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the removals are seen", func() bool { return len(tab.List()) == 1 })

	b.end()
	tab.kv = lags
	read := func() {
		w, err := tab.read(t.Context(), t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
	}
	read()
	if _, _, ok := tab.Get("domain.told"); len(tab.List()) != 1 || !ok {
		t.Errorf("after reading from a server that lags there are %q", tab.List())
	}
	if err := tab.Put(t.Context(), "domain.again", "new"); err != nil {
		t.Errorf("a policy that was removed is set again: %v", err)
	}
	eventually(t, "the other node has the new policy", func() bool {
		got, _, _ := there.Get("domain.again")
		return got == "new"
	})

	// A node that has just begun is told of a removal before it has read the value.
	tab.memory = replica.New[string](bucket.MarkerTTL)
	b.Told(Change{Table: "policies", Key: "domain.told", Revision: rev, Removed: true})
	read()
	if _, _, ok := tab.Get("domain.told"); ok {
		t.Error("what was told to be removed came back with a server that lags")
	}
}
