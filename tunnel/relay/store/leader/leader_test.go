package leader

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/natstest"
)

func TestALeaderIsAskedForWhatComesNext(t *testing.T) {
	conn, err := nats.Connect(natstest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: "adit_policies", LimitMarkerTTL: bucket.MarkerTTL})
	if err != nil {
		t.Fatal(err)
	}
	leader := Leader{conn, kv.Bucket()}
	first := func(text string) uint64 {
		t.Helper()
		rev, err := kv.Create(t.Context(), "domain."+text, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		return rev
	}
	a, b := first("a"), first("b")
	if _, err := bucket.Remove(t.Context(), kv, "domain.b", b); err != nil {
		t.Fatal(err)
	}
	if last, err := leader.Last(t.Context()); err != nil || last != b+1 {
		t.Errorf("the newest: got %d, %v, want %d", last, err, b+1)
	}
	for _, c := range []struct {
		from    uint64
		key     string
		rev     uint64
		removed bool
	}{{a, "domain.a", a, false}, {a + 1, "domain.b", b + 1, true}, {b + 2, "", 0, false}} {
		w, ok, err := leader.Next(t.Context(), c.from)
		if err != nil || ok != (c.key != "") || w.Key != c.key || w.Rev != c.rev || w.Removed != c.removed {
			t.Errorf("from %d: got %+v, %t, %v; want %q of %d, removed %t", c.from, w, ok, err, c.key, c.rev, c.removed)
		}
	}
	gone := Leader{conn, "adit_none"}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := gone.Last(ctx); err == nil || errors.Is(err, jetstream.ErrKeyNotFound) {
		t.Errorf("of a bucket that is not there: got %v", err)
	}
}
