package store

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
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

// TestARemovalStaysThoughTheServerLags has a node that has seen a removal come to
// a server that knows of none, and write there.
func TestARemovalStaysThoughTheServerLags(t *testing.T) {
	ns := startNATS(t, t.TempDir(), 0, nil)
	a := openAt(t, Config{URLs: []string{ns.ClientURL()}})
	for _, target := range []string{"domain.gone", "domain.again", "domain.told"} {
		if err := a.Policies.Set(t.Context(), target, []byte(`{"old":1}`)); err != nil {
			t.Fatal(err)
		}
	}
	b := openAt(t, Config{URLs: []string{ns.ClientURL()}})
	table := b.Policies.table
	lags := laggingReads{newLagging(t, table.kv)}
	_, rev, _ := table.get("domain.told")
	for _, target := range []string{"domain.gone", "domain.again"} {
		if err := a.Policies.Delete(t.Context(), target); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the removals are seen", func() bool { return len(b.Policies.List()) == 1 })

	b.stop() // its own watches end, and nobody keeps up
	for _, f := range b.tables {
		f.wait()
	}
	b.work.Wait()
	table.kv = lags
	read := func() {
		w, err := table.read(t.Context(), t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		w.stop()
	}
	read()
	if got := b.Policies.List(); len(got) != 1 || got[0].Target != "domain.told" {
		t.Errorf("after reading from a server that lags the policies are %+v", got)
	}
	if err := b.Policies.Set(t.Context(), "domain.again", []byte(`{"new":1}`)); err != nil {
		t.Errorf("a policy that was removed is set again: %v", err)
	}
	if got, _ := a.Policies.Get("domain.again"); string(got.Document) != `{"new":1}` {
		eventually(t, "the other node has the new policy", func() bool {
			got, _ := a.Policies.Get("domain.again")
			return string(got.Document) == `{"new":1}`
		})
	}

	// A node that has just begun is told of a removal before it has read the value.
	clear(table.entries)
	b.Told(Change{Table: "policies", Key: "domain.told", Revision: rev, Removed: true})
	read()
	if _, ok := b.Policies.Get("domain.told"); ok {
		t.Error("what was told to be removed came back with a server that lags")
	}
}
