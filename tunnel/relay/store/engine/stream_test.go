package engine

import (
	"context"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// openMost is how long one try to open a stream lasts at most.
const openMost = 20 * time.Second

// TestStoreOpensWithoutWhatItCanWaitFor checks that a stream that nobody answers for does not
// keep a relay of several nodes from starting, while a refusal does.
func TestStoreOpensWithoutWhatItCanWaitFor(t *testing.T) {
	for name, test := range map[string]struct {
		err    error
		starts bool
	}{
		"nobody answers": {nats.ErrNoResponders, true},
		"no leader":      {&jetstream.APIError{Code: http.StatusServiceUnavailable, ErrorCode: 10008}, true},
		"refused":        {&jetstream.APIError{Code: http.StatusBadRequest, ErrorCode: 10052}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &Engine{log: slog.New(slog.DiscardHandler)}
				asked := time.Now()
				err := e.openSoon(t.Context(), "some", NewStream(func(context.Context) (jetstream.Stream, error) { return nil, test.err }))
				if (err == nil) != test.starts {
					t.Errorf("got %v", err)
				}
				if took := time.Since(asked); took > lateWait+openMost {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}
