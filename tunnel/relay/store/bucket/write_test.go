package bucket

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// TestWhichWritesAreTriedAgain checks that only writes without an answer are repeated.
func TestWhichWritesAreTriedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		again bool
	}{
		"done":                  {nil, false},
		"nobody answers":        {nats.ErrNoResponders, true},
		"no stream answers":     {jetstream.ErrNoStreamResponse, true},
		"no answer in time":     {nats.ErrTimeout, true},
		"the try has no time":   {context.DeadlineExceeded, true},
		"not settled":           {fmt.Errorf("write: %w", errUnsettled), true},
		"connecting again":      {nats.ErrConnectionReconnecting, true},
		"too much waits for it": {nats.ErrReconnectBufExceeded, true},
		"no leader":             {&jetstream.APIError{Code: 503, ErrorCode: 10008}, true},
		"no room":               {&jetstream.APIError{Code: 503, ErrorCode: codeServerFull}, false},
		"refused":               {&jetstream.APIError{Code: 400, ErrorCode: 10071}, false},
		"another revision":      {jetstream.ErrKeyExists, false},
		"closed":                {nats.ErrConnectionClosed, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, tries, err := Again(t.Context(), func(context.Context) (uint64, error) { return 0, c.err })
				if !errors.Is(err, c.err) || tries > 1 != c.again {
					t.Errorf("tried %d times, to the end %v; again: want %v", tries, err, c.again)
				}
				first := true
				rev, tries, err := Again(t.Context(), func(context.Context) (uint64, error) {
					if first {
						first = false
						return 0, c.err
					}
					return 7, nil
				})
				if c.again && (rev != 7 || tries != 2 || err != nil) {
					t.Errorf("with an answer the second time: %d after %d tries, %v", rev, tries, err)
				}
			})
		})
	}
}

// TestAWriteIsTriedForAWhile gets no answer at first, or none at all.
func TestAWriteIsTriedForAWhile(t *testing.T) {
	for name, write := range map[string]func(context.Context) (uint64, error){
		"nobody is there": func(context.Context) (uint64, error) { return 0, nats.ErrNoResponders },
		"nobody answers":  func(ctx context.Context) (uint64, error) { <-ctx.Done(); return 0, ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, tries, err := Again(t.Context(), write)
				if took := time.Since(begun); took < retryFor-retryPause || took > retryFor || err == nil || tries < 3 {
					t.Errorf("tried %d times in %v, to the end %v", tries, took, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				begun = time.Now()
				if _, _, err := Again(ctx, write); err == nil || time.Since(begun) > time.Second {
					t.Errorf("after the end of whoever asked it ended in %v, with %v", time.Since(begun), err)
				}
			})
		})
	}
}

// TestARefusedStoreIsNotOpenedAgain also checks that attempts stop when nobody is waiting any
// more.
func TestARefusedStoreIsNotOpenedAgain(t *testing.T) {
	for name, refused := range map[string]error{
		"refused": &jetstream.APIError{Code: 400, ErrorCode: 10071},
		"no room": &jetstream.APIError{Code: 500, ErrorCode: codeNoStorage},
		"no time": nats.ErrTimeout,
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			tries := 0
			err := Patiently(ctx, func(context.Context) error {
				if tries++; name == "no time" {
					cancel()
				}
				return refused
			})
			if cancel(); tries != 1 || !errors.Is(err, refused) {
				t.Errorf("%s: opened %d times, %v", name, tries, err)
			}
		})
	}
}

// TestAContestEnds covers writers who all see something new, and one who does not.
func TestAContestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := Contest{Most: 3}
		for rev := range uint64(3) {
			if err := busy.Next(t.Context(), rev); err != nil {
				t.Fatal(err)
			}
		}
		if err := busy.Next(t.Context(), 3); !errors.Is(err, ErrConflict) {
			t.Errorf("the fourth try that sees something new: %v", err)
		}
		var stuck Contest
		begun := time.Now()
		var err error
		for err == nil {
			err = stuck.Next(t.Context(), 0)
		}
		if took := time.Since(begun); !errors.Is(err, errUnsettled) || took < retryFor || took > retryFor+time.Second {
			t.Errorf("one that sees the same all the while ends after %v with %v", took, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var left Contest
		if err := left.Next(ctx, 0); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := left.Next(ctx, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("when nobody waits for it: %v", err)
		}
	})
}
