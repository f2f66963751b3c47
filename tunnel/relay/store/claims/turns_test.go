package claims

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestOneClientsClaimsDoNotKeepOthersWaiting has a client with very many agents write
// as many claims at once, where a write takes as long as on a slow disk.
func TestOneClientsClaimsDoNotKeepOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		disk := make(chan struct{}, 1)
		var waiting, most, done atomic.Int32
		write := func() error {
			most.Store(max(most.Load(), waiting.Add(1)))
			disk <- struct{}{}
			time.Sleep(10 * time.Millisecond)
			<-disk
			waiting.Add(-1)
			done.Add(1)
			return nil
		}
		var all sync.WaitGroup
		for range 1000 {
			all.Go(func() { _ = turns.take(t.Context(), "many", write) })
		}
		synctest.Wait()
		begun := time.Now()
		if err := turns.take(t.Context(), "one", write); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > (turnsOfClient+1)*10*time.Millisecond {
			t.Errorf("another client's claim took %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		all.Go(func() {
			if err := turns.take(ctx, "many", write); !errors.Is(err, context.Canceled) {
				t.Errorf("a claim that nobody waits for any more: %v", err)
			}
		})
		synctest.Wait()
		cancel()
		all.Wait()
		if done.Load() != 1001 || most.Load() > turnsOfClient+1 {
			t.Errorf("%d writes were made, %d at once", done.Load(), most.Load())
		}
		if len(turns.ofClient) != 0 || len(turns.all) != 0 {
			t.Errorf("%d clients and %d places are left", len(turns.ofClient), len(turns.all))
		}
	})
}

// TestClaimsAreWrittenInTurn has all places of a client taken: what changes its
// claims waits, and what changes none does not.
func TestClaimsAreWrittenInTurn(t *testing.T) {
	s := open(t, t.TempDir())
	here := func(string, Holder) bool { return false }
	h := Holder{Slot: SlotPlain, Instance: "i", Key: "k", Type: "http", Mode: "standard"}
	if _, err := s.Take(t.Context(), TargetDomain("a.test"), "c", h, here); err != nil {
		t.Fatal(err)
	}
	free := make(chan struct{})
	var holding sync.WaitGroup
	var held sync.WaitGroup
	held.Add(turnsOfClient)
	for range turnsOfClient {
		holding.Go(func() {
			_ = s.turns.take(t.Context(), "c", func() error { held.Done(); <-free; return nil })
		})
	}
	held.Wait()
	defer holding.Wait()
	defer close(free)
	if _, err := s.Take(t.Context(), TargetDomain("a.test"), "c", h, here); err != nil {
		t.Errorf("a claim that is there: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Take(ended, TargetDomain("b.test"), "c", h, here); !errors.Is(err, context.Canceled) {
		t.Errorf("a claim that had no turn: %v", err)
	}
	if err := s.Release(ended, TargetDomain("a.test"), "c", "i", "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("giving back without a turn: %v", err)
	}
}
