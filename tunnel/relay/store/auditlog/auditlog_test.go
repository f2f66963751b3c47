package auditlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/engine"
	"adit/tunnel/relay/store/engine/enginetest"
	"adit/tunnel/relay/store/natstest"
)

// open opens a log in a folder of the test's, or on the servers at some URLs.
func open(t *testing.T, urls ...string) (*Log, *engine.Engine) {
	t.Helper()
	e, err := engine.Open(engine.Config{Dir: t.TempDir(), URLs: urls, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	l, err := Open(t.Context(), e, new(bucket.Meter))
	if err != nil {
		t.Fatal(err)
	}
	return l, e
}

// TestWritersOnManyNodesMakeOneChain has three nodes write at the same time.
func TestWritersOnManyNodesMakeOneChain(t *testing.T) {
	url := natstest.Start(t).URL()
	const nodes, each = 3, 20
	var writing sync.WaitGroup
	var logs []*Log
	for range nodes {
		l, _ := open(t, url)
		logs = append(logs, l)
	}
	for i, l := range logs {
		for w := range 2 {
			writing.Go(func() {
				for k := range each / 2 {
					_, err := l.Append(t.Context(), audit.Change{
						Node: fmt.Sprint("n", i), Actor: audit.Actor{Kind: audit.KindUser, Name: fmt.Sprint(w)}, Action: "test", Target: fmt.Sprint(k),
					})
					if err != nil {
						t.Errorf("node %d: %v", i, err)
					}
				}
			})
		}
	}
	writing.Wait()
	for i, l := range logs {
		r, err := l.Verify(t.Context(), "")
		if err != nil || !r.OK || r.Entries != nodes*each {
			t.Errorf("node %d sees %+v, %v; want %d entries", i, r, err, nodes*each)
		}
	}
}

// mute is a JetStream that writes and loses its answer.
type mute struct {
	jetstream.JetStream
	lose atomic.Int32
	lost func() // may be nil
}

func (m *mute) Publish(ctx context.Context, subject string, data []byte, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	ack, err := m.JetStream.Publish(ctx, subject, data, opts...)
	if err == nil && m.lose.Add(-1) >= 0 {
		if m.lost != nil {
			m.lost()
		}
		return nil, context.DeadlineExceeded
	}
	return ack, err
}

// TestAuditEntryWhoseAnswerIsLostIsThereOnce loses the answer to one attempt, and to all of
// them. The entry is not written again later.
func TestAuditEntryWhoseAnswerIsLostIsThereOnce(t *testing.T) {
	s, _ := open(t)
	js := &mute{JetStream: s.js}
	s.js = js
	js.lose.Store(1)
	if _, err := s.Append(t.Context(), audit.Change{Action: "one"}); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithCancel(t.Context())
	defer cancel()
	js.lost = cancel // so that there is no other try
	js.lose.Store(1)
	tried, err := s.Append(short, audit.Change{Action: "two", Target: "x"})
	if err == nil || tried.Seq != 2 {
		t.Fatalf("got %+v, %v, want the entry that was tried and an error", tried, err)
	}
	if _, err := s.Append(t.Context(), audit.Change{Action: "three"}); err != nil {
		t.Fatal(err)
	}
	late := Late{At: tried.Time, Action: "two", Target: "x", Tried: &tried}
	if e, err := s.AppendLate(t.Context(), late); err != nil || e.Seq != 0 {
		t.Errorf("what was written already: got %+v, %v", e, err)
	}
	late.Tried.Hash = audit.Root // another's
	if e, err := s.AppendLate(t.Context(), late); err != nil || e.Seq != 4 {
		t.Errorf("what was not: got %+v, %v", e, err)
	}
	if r, err := s.Verify(t.Context(), ""); err != nil || !r.OK || r.Entries != 4 {
		t.Errorf("got %+v, %v", r, err)
	}
}

// TestWhatWasNotThereIsUsedOnceItIs has a stream that the cluster answers for only after the
// log has been opened.
func TestWhatWasNotThereIsUsedOnceItIs(t *testing.T) {
	_, there := open(t, natstest.Start(t).URL())
	e := &enginetest.Later{Engine: there, Away: true}
	l, err := Open(t.Context(), e, new(bucket.Meter))
	if err != nil {
		t.Fatal(err)
	}
	use := func() error {
		_, err := l.Append(t.Context(), audit.Change{Action: "client.add", Actor: audit.Actor{Name: "somebody"}})
		return err
	}
	if err := use(); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("while nobody answers: %v", err)
	}
	e.Away = false
	if err := use(); err != nil {
		t.Error(err)
	}
}

func TestStreamIsMadeWithItsCopies(t *testing.T) {
	copies := enginetest.Thrice{}
	if _, err := Open(t.Context(), copies, nil); err != nil || copies["adit_audit"] != 3 {
		t.Errorf("copies are asked for as %v, %v, want 3", copies, err)
	}
}
