package store

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// openMost is how long one try to open a stream lasts at most.
const openMost = 20 * time.Second

// TestStoreOpensWithoutWhatItCanWaitFor: a stream that nobody answers for does not
// keep a relay of several nodes from starting, and a refusal does.
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
				s := &Store{log: slog.New(slog.DiscardHandler)}
				asked := time.Now()
				err := s.openSoon(t.Context(), "some", &lateStream{open: func(context.Context) (jetstream.Stream, error) { return nil, test.err }})
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

// TestWhatWasNotThereIsUsedOnceItIs has streams that the cluster answers for only
// after the store has opened.
func TestWhatWasNotThereIsUsedOnceItIs(t *testing.T) {
	s := openAt(t, Config{URLs: []string{natstest.Start(t).URL()}})
	away := true
	later := func(l *lateStream) *lateStream {
		open := l.open
		return &lateStream{open: func(ctx context.Context) (jetstream.Stream, error) {
			if away {
				return nil, nats.ErrNoResponders
			}
			return open(ctx)
		}}
	}
	s.Events.stream, s.Audit.stream = later(s.Events.stream), later(s.Audit.stream)
	event := []wire.Access{{Endpoint: "ep_1", Time: time.Now()}}
	use := func() error {
		_, kept := s.Events.Kept(t.Context())
		_, wrote := s.Audit.Append(t.Context(), audit.Change{Action: "client.add", Actor: audit.Actor{Name: "somebody"}})
		return errors.Join(s.Events.Append(t.Context(), event), kept, wrote)
	}
	if err := use(); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("while nobody answers: %v", err)
	}
	away = false
	if err := use(); err != nil {
		t.Error(err)
	}
	if kept, err := s.Events.Kept(t.Context()); err != nil || kept.Bytes == 0 {
		t.Errorf("%d bytes of events are kept, %v", kept.Bytes, err)
	}
}
