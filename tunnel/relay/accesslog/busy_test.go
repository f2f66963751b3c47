package accesslog

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/store/events"
	"adit/tunnel/wire"
)

// busyStore is a store in which each write takes as long as it takes until the next
// visitor comes.
type busyStore struct {
	Store

	log     *Log
	batches atomic.Int64
	most    int64 // visitors that come
}

func (b *busyStore) Append(_ context.Context, batch []wire.Access) error {
	if b.batches.Add(1) <= b.most {
		b.log.Add(wire.Access{Path: "/meanwhile"})
	}
	return nil
}

func TestFlushEndsWhileVisitorsCome(t *testing.T) {
	store := &busyStore{most: 10_000}
	a := New(store, slog.New(slog.DiscardHandler))
	store.log = a
	a.Add(wire.Access{Path: "/before"})
	a.Flush()
	if n := store.batches.Load(); n != 1 {
		t.Errorf("what was there before was stored in %d batches, want 1: others waited for those who came after", n)
	}
}

func TestEventsThatComeDuringAFlushWaitForTheNextTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &busyStore{most: 1}
		a := New(store, slog.New(slog.DiscardHandler))
		store.log = a
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = a.Run(ctx) }()
		a.Add(wire.Access{Path: "/before"})
		time.Sleep(flushEvery + time.Millisecond)
		synctest.Wait()
		if n := store.batches.Load(); n != 1 {
			t.Errorf("after a second there are %d batches, want 1", n)
		}
		time.Sleep(flushEvery)
		synctest.Wait()
		if n := store.batches.Load(); n != 2 || a.Waiting() > 0 {
			t.Errorf("a second later there are %d batches, and %d events wait, want 2 and 0", n, a.Waiting())
		}
		stop()
		<-ended
	})
}

// failingStore fails the first batches while more events arrive.
type failingStore struct {
	Store

	fails, stored int
	meanwhile     func()
}

func (f *failingStore) Append(_ context.Context, batch []wire.Access) error {
	if f.meanwhile != nil {
		f.meanwhile()
		f.meanwhile = nil
	}
	if f.fails > 0 {
		f.fails--
		return errors.New("the store is away")
	}
	f.stored += len(batch)
	return nil
}

func TestAccessEventsAreStoredAfterTheStoreWasAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &failingStore{fails: 3}
		log := New(away, slog.New(slog.DiscardHandler))
		add := func(n int) {
			for range n {
				log.Add(wire.Access{})
			}
		}
		away.meanwhile = func() { add(4*events.MaxBatch + 1) }
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- log.Run(ctx) }()
		add(events.MaxBatch)
		time.Sleep(time.Minute)
		if n := log.Waiting(); n != 0 || away.stored == 0 {
			t.Errorf("got %d events waiting a minute after the store was back, and %d stored, want 0 waiting", n, away.stored)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestLogIsNotFilledWhileEventsAreLost covers NATS being out of space for a day while a
// visitor comes every second.
func TestLogIsNotFilledWhileEventsAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		full := &failingStore{fails: 1800}
		log := New(full, slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
				return slog.Attr{}
			}
			return a
		}})))
		for range 1810 {
			log.Add(wire.Access{})
			log.Flush()
			log.Flush() // of nothing
			time.Sleep(time.Second)
		}
		want := `msg="access events were not stored" count=1 error="the store is away"` + "\n" +
			`msg="access events were not stored" count=600 error="the store is away"` + "\n" +
			`msg="access events were not stored" count=600 error="the store is away"` + "\n" +
			`msg="access events are stored again" lost=1800` + "\n"
		if got := said.String(); got != want || log.Lost() != 1800 {
			t.Errorf("%d are lost, and the log says\n%s, want\n%s", log.Lost(), got, want)
		}
	})
}

// TestWhatTheStoreIsTooSlowForIsTold checks that the loss is logged once, although some
// events are stored all the while.
func TestWhatTheStoreIsTooSlowForIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		log := New(&failingStore{}, slog.New(slog.NewTextHandler(&said, nil)))
		for range 100 {
			for range mostWaiting + 1 {
				log.Add(wire.Access{})
			}
			log.Flush()
			time.Sleep(time.Second)
		}
		if n := strings.Count(said.String(), "\n"); n != 1 || !strings.Contains(said.String(), `"access events were not stored" count=1 error="the store is too slow"`) || log.Lost() != 100 {
			t.Errorf("%d are lost, and the log says\n%s, want that once", log.Lost(), said.String())
		}
	})
}
