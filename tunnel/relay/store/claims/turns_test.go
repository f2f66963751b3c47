package claims

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestClaimsAreWrittenInTurn takes all of a client's turns. Calls that change its claims wait,
// and calls that change nothing do not.
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
			_ = s.turns.Take(t.Context(), "c", func() error { held.Done(); <-free; return nil })
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
