package relay

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/wire"
)

// busyStore is a store in which each write takes as long as it takes the next
// visitor to come.
type busyStore struct {
	log     *accessLog
	batches atomic.Int64
	most    int64 // visitors that come
}

func (b *busyStore) Append(_ context.Context, batch []wire.Access) error {
	if b.batches.Add(1) <= b.most {
		b.log.add(wire.Access{Path: "/meanwhile"})
	}
	return nil
}

func TestFlushEndsWhileVisitorsCome(t *testing.T) {
	store := &busyStore{most: 10_000}
	var lost atomic.Uint64
	a := newAccessLog(store, &lost, slog.New(slog.DiscardHandler))
	store.log = a
	a.add(wire.Access{Path: "/before"})
	a.flush()
	if n := store.batches.Load(); n != 1 {
		t.Errorf("what was there before was stored in %d batches, want 1: others waited for those who came after", n)
	}
}

func TestEventsThatComeDuringAFlushWaitForTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &busyStore{most: 1}
		var lost atomic.Uint64
		a := newAccessLog(store, &lost, slog.New(slog.DiscardHandler))
		store.log = a
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = a.run(ctx) }()
		a.add(wire.Access{Path: "/before"})
		time.Sleep(accessFlush + time.Millisecond)
		synctest.Wait()
		if n := store.batches.Load(); n != 1 {
			t.Errorf("after a second there are %d batches, want 1", n)
		}
		time.Sleep(accessFlush)
		synctest.Wait()
		if n := store.batches.Load(); n != 2 || a.waiting() > 0 {
			t.Errorf("a second later there are %d batches, and %d events wait, want 2 and 0", n, a.waiting())
		}
		stop()
		<-ended
	})
}
