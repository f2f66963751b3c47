package pump

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/lend"
	"adit/tunnel/relay/shape"
)

// endless has always as much as is asked for.
type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// stalling is a visitor that takes some parts and then no more.
type stalling struct {
	left  int
	held  *atomic.Int64 // what the stalled hold
	stood chan<- struct{}
	end   <-chan struct{}
}

func (s *stalling) Write(b []byte) (int, error) {
	if s.left--; s.left >= 0 {
		return len(b), nil
	}
	s.held.Add(int64(len(b)))
	s.stood <- struct{}{}
	<-s.end
	return 0, errors.New("gone")
}

// TestStalledVisitorsHoldLittleMemory has 200 visitors ask for much data and stop reading. A
// visitor who comes after them is served.
func TestStalledVisitorsHoldLittleMemory(t *testing.T) {
	const visitors = 200
	var held, moved atomic.Int64
	stood, end := make(chan struct{}), make(chan struct{})
	bound := func() shape.Buckets { return nil }
	var all sync.WaitGroup
	for range visitors {
		all.Go(func() {
			v := &stalling{left: 8, held: &held, stood: stood, end: end}
			_, _ = move(context.Background(), v, endless{}, &moved, bound, func(int) {})
		})
	}
	deadline := time.After(time.Minute)
	for i := range visitors {
		select {
		case <-stood:
		case <-deadline:
			t.Fatalf("%d of %d visitors stand still", i, visitors)
		}
	}
	const most = lend.MostHuge*lend.Huge + (visitors-lend.MostHuge)*lend.Large
	if got := held.Load(); got > most || got < visitors*lend.Small {
		t.Errorf("%d stalled visitors hold %d KiB, want at most %d", visitors, got>>10, most>>10)
	}
	n, err := move(context.Background(), io.Discard, io.LimitReader(endless{}, 10<<20), &moved, bound, func(int) {})
	if err != nil || n != 10<<20 {
		t.Errorf("one more visitor got %d bytes, %v", n, err)
	}
	close(end)
	all.Wait()
}
