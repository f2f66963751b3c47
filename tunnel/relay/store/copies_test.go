package store

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

// making is a cluster that notes how often it shall keep a stream.
type making struct {
	jetstream.JetStream
	copies map[string]int
}

func (m making) CreateOrUpdateStream(_ context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	m.copies[cfg.Name] = cfg.Replicas
	return nil, nil
}

func TestStreamsAreMadeWithTheirCopies(t *testing.T) {
	js := making{copies: make(map[string]int)}
	if _, err := makeAudit(t.Context(), js, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := makeEvents(Config{})(t.Context(), js, 2); err != nil {
		t.Fatal(err)
	}
	if js.copies[auditStream] != 3 || js.copies[eventsStream] != 2 {
		t.Errorf("copies are asked for as %v, want 3 of the audit log and 2 of the events", js.copies)
	}
}
