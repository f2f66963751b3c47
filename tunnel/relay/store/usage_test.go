package store

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// unanswered is a bucket whose writes are not answered in time, and made all the same,
// while it is so.
type unanswered struct {
	jetstream.KeyValue
	so bool
}

func (l *unanswered) Update(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if !l.so {
		return l.KeyValue.Update(ctx, key, value, rev)
	}
	if _, err := l.KeyValue.Update(context.WithoutCancel(ctx), key, value, rev); err != nil {
		return 0, err
	}
	return 0, context.DeadlineExceeded
}

// TestTrafficIsCountedOnceThoughItsWriteWasNotAnswered has a node repeat a count whose write
// got no answer, while another node counts as well.
func TestTrafficIsCountedOnceThoughItsWriteWasNotAnswered(t *testing.T) {
	s := open(t, t.TempDir())
	kv := &unanswered{}
	s.Usages = &Usages{over[Usage](t, s, "usage", func(of jetstream.KeyValue) jetstream.KeyValue { kv.KeyValue = of; return kv })}
	const client, month = "c_1", "2026-05"
	add := func(run string, in int64, before Counted) error {
		_, err := s.Usages.Add(t.Context(), client, month, Tally{Run: run, In: in, Out: in, Before: before})
		return err
	}
	want := func(in int64) {
		t.Helper()
		if got := s.Usages.Get(client, month); got.In != in || got.Out != in || got.Runs != nil {
			t.Errorf("got %+v, want %d bytes each way", got, in)
		}
	}
	if err := add("a", 10, Counted{}); err != nil {
		t.Fatal(err)
	}
	kv.so = true
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // it is tried once
	if _, err := s.Usages.Add(ctx, client, month, Tally{Run: "a", In: 30, Out: 30, Before: Counted{In: 10, Out: 10}}); err == nil {
		t.Fatal("the write was answered")
	}
	kv.so = false
	if err := add("b", 5, Counted{}); err != nil {
		t.Fatal(err)
	}
	if err := add("a", 31, Counted{In: 10, Out: 10}); err != nil {
		t.Fatal(err)
	}
	want(36)
	if c, ok := s.Usages.Counted(client, "a"); !ok || c.In != 31 {
		t.Errorf("counted %+v, %v; want 31", c, ok)
	}
	for i := range maxRuns {
		if err := add("other"+string(rune('a'+i)), 1, Counted{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := add("b", 6, Counted{In: 5, Out: 5}); err != nil { // that is forgotten by now
		t.Fatal(err)
	}
	want(36 + maxRuns + 1)
	if got := s.Usages.Get(client, "2026-06"); got.In != 0 {
		t.Errorf("another month has %d bytes", got.In)
	}
	if _, err := s.Usages.Add(t.Context(), client, "2026-06", Tally{Run: "b", In: 8, Out: 8}); err != nil {
		t.Fatal(err)
	}
	if got := s.Usages.Get(client, "2026-06"); got.In != 2 {
		t.Errorf("another month has %d bytes, want 2", got.In)
	}
}
