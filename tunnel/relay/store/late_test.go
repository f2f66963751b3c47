package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// TestWhatWasNotThereIsUsedOnceItIs has streams that the cluster answers for only
// after the store has opened.
func TestWhatWasNotThereIsUsedOnceItIs(t *testing.T) {
	s := openAt(t, Config{URLs: []string{natstest.Start(t).URL()}})
	away := true
	later := func(name string) *engine.Stream {
		return engine.NewStream(func(ctx context.Context) (jetstream.Stream, error) {
			if away {
				return nil, nats.ErrNoResponders
			}
			return s.engine.JetStream().Stream(ctx, name)
		})
	}
	s.Events.stream, s.Audit.stream = later(eventsStream), later(auditStream)
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
