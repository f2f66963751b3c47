package table

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/engine"
)

// node is a set of tables as a relay has them, of which tests end the following.
type node struct {
	*Set
	engine *engine.Engine
	life   context.Context
	end    func() // its watches end, and nobody keeps up
}

// begin opens an engine: of a server in this process, or of those at some URLs.
func begin(t *testing.T, urls ...string) *node {
	t.Helper()
	e, err := engine.Open(engine.Config{Dir: t.TempDir(), URLs: urls, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	n := &node{NewSet(Config{Engine: e, Urgent: []string{"policies"}, Took: new(bucket.Meter), Log: slog.New(slog.DiscardHandler)}), e, nil, nil}
	var end context.CancelFunc
	n.life, end = context.WithCancel(context.Background())
	n.end = func() { end(); n.Close() }
	t.Cleanup(func() { n.end(); e.Close() })
	return n
}

// table opens a table of texts.
func (n *node) table(t *testing.T, name string) *Table[string] {
	t.Helper()
	tab, err := Open[string](t.Context(), n.life, n.Set, name)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func put(t *testing.T, tab *Table[string], key, text string) (rev uint64) {
	t.Helper()
	if err := tab.Put(t.Context(), key, text); err != nil {
		t.Fatal(err)
	}
	_, rev, _ = tab.Get(key)
	return rev
}

// as is an engine whose buckets are spoilt.
type as struct {
	*engine.Engine
	spoil func(jetstream.KeyValue) jetstream.KeyValue
}

func (e as) Bucket(ctx context.Context, name string) (jetstream.KeyValue, error) {
	kv, err := e.Engine.Bucket(ctx, name)
	if err != nil {
		return nil, err
	}
	return e.spoil(kv), nil
}

// over opens a table of a node anew, on its bucket as spoil makes it, until the end of
// the test.
func over(ctx context.Context, t *testing.T, n *node, name string, spoil func(jetstream.KeyValue) jetstream.KeyValue) *Table[string] {
	t.Helper()
	s := NewSet(Config{Engine: as{n.engine, spoil}, Took: new(bucket.Meter), Log: slog.New(slog.DiscardHandler)})
	life, end := context.WithCancel(context.Background())
	t.Cleanup(func() { end(); s.Close() })
	tab, err := Open[string](ctx, life, s, name)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

// patience is well above the heartbeats after which a watch knows that its
// server restarted.
const patience = 90 * time.Second

func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	start := time.Now()
	for ; !f(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			tb.Fatalf("%s: it did not happen in %v", what, patience)
		}
	}
}
