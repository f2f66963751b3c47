package store

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/natstest"
)

// partly is a cluster that has lost one stream and keeps another three times.
type partly struct {
	jetstream.JetStream
	asked map[string]int // copies, by stream
}

type kept struct {
	jetstream.Stream
	copies int
}

func (k kept) CachedInfo() *jetstream.StreamInfo {
	return &jetstream.StreamInfo{Config: jetstream.StreamConfig{Replicas: k.copies}}
}

func (p partly) Stream(_ context.Context, name string) (jetstream.Stream, error) {
	if name == auditStream {
		return kept{copies: 3}, nil
	}
	return nil, jetstream.ErrStreamNotFound
}

func (p partly) CreateOrUpdateStream(_ context.Context, cfg jetstream.StreamConfig) (jetstream.Stream, error) {
	p.asked[cfg.Name] = cfg.Replicas
	return kept{copies: cfg.Replicas}, nil
}

// TestAuditLogKeepsItsCopies has a node know of one server of a cluster that has lost
// its access events: the audit log is not kept fewer times than before for that.
func TestAuditLogKeepsItsCopies(t *testing.T) {
	conn, err := nats.Connect(natstest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	s := &Store{conn: conn}
	js := partly{asked: make(map[string]int)}
	if err := s.loadStreams(t.Context(), js, Config{}); err != nil {
		t.Fatal(err)
	}
	if js.asked[auditStream] != 3 || js.asked[eventsStream] != 1 {
		t.Errorf("copies are asked for as %v, want the audit log's 3 as before", js.asked)
	}
}
