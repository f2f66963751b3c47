package store

import (
	"context"
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/table"
)

// bucketOf is a bucket of a store's, by its table's name.
func bucketOf(tb testing.TB, s *Store, name string) jetstream.KeyValue {
	tb.Helper()
	kv, err := s.engine.JetStream().KeyValue(tb.Context(), "adit_"+name)
	if err != nil {
		tb.Fatal(err)
	}
	return kv
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

// over opens a table of a store's anew, on its bucket as spoil makes it.
func over[T any](tb testing.TB, s *Store, name string, spoil func(jetstream.KeyValue) jetstream.KeyValue) *table.Table[T] {
	tb.Helper()
	set := table.NewSet(table.Config{Engine: as{s.engine, spoil}, Took: &s.took, Log: slog.New(slog.DiscardHandler)})
	life, end := context.WithCancel(context.Background())
	tb.Cleanup(func() { end(); set.Close() })
	t, err := table.Open[T](tb.Context(), life, set, name)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// deaf is a bucket whose watch brings what is there, and nothing after that.
type deaf struct{ jetstream.KeyValue }

func (d deaf) WatchAll(ctx context.Context, opts ...jetstream.WatchOpt) (jetstream.KeyWatcher, error) {
	w, err := d.KeyValue.WatchAll(ctx, opts...)
	if err != nil {
		return nil, err
	}
	there := make(chan jetstream.KeyValueEntry)
	go func() {
		defer close(there)
		for e := range w.Updates() {
			select {
			case there <- e:
			case <-ctx.Done():
				return
			}
			if e == nil {
				break
			}
		}
		<-ctx.Done()
	}()
	return deafWatch{w, there}, nil
}

type deafWatch struct {
	jetstream.KeyWatcher
	updates chan jetstream.KeyValueEntry
}

func (w deafWatch) Updates() <-chan jetstream.KeyValueEntry { return w.updates }

func deafened(kv jetstream.KeyValue) jetstream.KeyValue { return deaf{kv} }
