package engine

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/natstest"
)

// Two streams of the store.
const (
	eventsStream = "adit_access"
	auditStream  = "adit_audit"
)

// connect is a connection to one server.
func connect(t *testing.T) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(natstest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

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

// TestAuditLogKeepsItsCopies has a node that knows only one server of a cluster, which has
// lost its access events. The audit log keeps its number of replicas all the same.
func TestAuditLogKeepsItsCopies(t *testing.T) {
	js := partly{asked: make(map[string]int)}
	e := &Engine{conn: connect(t), js: js}
	for _, name := range []string{eventsStream, auditStream} {
		make := func(ctx context.Context, js jetstream.JetStream, copies int) (jetstream.Stream, error) {
			return js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: name, Replicas: copies})
		}
		if _, err := e.Stream(t.Context(), name, "some", make); err != nil {
			t.Fatal(err)
		}
	}
	if js.asked[auditStream] != 3 || js.asked[eventsStream] != 1 {
		t.Errorf("copies are asked for as %v, want the audit log's 3 as before", js.asked)
	}
}

// silent is a JetStream that does not answer for its streams.
type silent struct {
	jetstream.JetStream
	err error
}

func (s silent) Stream(context.Context, string) (jetstream.Stream, error) { return nil, s.err }

// TestCopiesAreKept checks that a bucket does not get fewer replicas because its cluster has not
// said how many it has now.
func TestCopiesAreKept(t *testing.T) {
	conn := connect(t)
	for err, want := range map[error]int{jetstream.ErrStreamNotFound: 1, nats.ErrNoResponders: 0, context.DeadlineExceeded: 0} {
		if n, got := (&Engine{conn: conn, js: silent{err: err}}).copies(t.Context(), "KV_adit_x"); n != want || (got == nil) != (want == 1) {
			t.Errorf("%v: %d copies, %v", err, n, got)
		}
	}
	three := &Engine{cfg: Config{Replicas: 3}, conn: conn, js: silent{err: nats.ErrNoResponders}}
	if n, err := three.copies(t.Context(), "KV_adit_x"); n != 3 || err != nil {
		t.Errorf("three were asked for: %d copies, %v", n, err)
	}
}
