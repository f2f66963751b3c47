package auditlog

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/store/engine"
)

// halting is a stream of audit entries that does not answer for some of them.
type halting struct {
	jetstream.Stream
	entries [][]byte
	fault   map[uint64]error
}

func (h *halting) Info(context.Context, ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	return &jetstream.StreamInfo{State: jetstream.StreamState{FirstSeq: 1, LastSeq: uint64(len(h.entries))}}, nil
}

func (h *halting) GetMsg(_ context.Context, seq uint64, _ ...jetstream.GetMsgOpt) (*jetstream.RawStreamMsg, error) {
	if err := h.fault[seq]; err != nil {
		return nil, err
	}
	return &jetstream.RawStreamMsg{Sequence: seq, Data: h.entries[seq-1]}, nil
}

// chainOf is an audit log of some entries on a stream that halts.
func chainOf(t *testing.T, n int) (*Log, *halting) {
	t.Helper()
	h := &halting{fault: make(map[uint64]error)}
	seq, head := uint64(0), audit.Root
	for range n {
		e, err := audit.Next(seq, head, time.Now(), audit.Change{Action: "client.add"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		h.entries, seq, head = append(h.entries, text), e.Seq, e.Hash
	}
	return &Log{stream: engine.NewStream(func(context.Context) (jetstream.Stream, error) { return h, nil })}, h
}

// TestLogThatDoesNotAnswerIsNotBroken checks that a cluster that cannot answer for a moment
// neither makes the chain look tampered with nor leaves entries out of a page.
func TestLogThatDoesNotAnswerIsNotBroken(t *testing.T) {
	for _, fault := range []error{nats.ErrTimeout, context.DeadlineExceeded, nats.ErrNoResponders, nats.ErrConnectionClosed} {
		a, h := chainOf(t, 5)
		h.fault[3] = fault
		if r, err := a.Verify(t.Context(), ""); !errors.Is(err, fault) {
			t.Errorf("%v: the chain is found to be %+v, with the error %v", fault, r, err)
		}
		shown := 0
		err := a.Newest(t.Context(), 0, func(audit.Entry) bool { shown++; return true })
		if !errors.Is(err, fault) {
			t.Errorf("%v: %d of 5 entries are shown, with the error %v", fault, shown, err)
		}
	}
}

func TestEntryThatIsGoneOrIsNoneBreaksTheChain(t *testing.T) {
	for name, damage := range map[string]func(*halting){
		"gone": func(h *halting) { h.fault[3] = jetstream.ErrMsgNotFound },
		"none": func(h *halting) { h.entries[2] = []byte("?") },
	} {
		a, h := chainOf(t, 5)
		damage(h)
		if r, err := a.Verify(t.Context(), ""); err != nil || r.OK || r.BrokenAt != 3 {
			t.Errorf("%s: the chain is found to be %+v, %v", name, r, err)
		}
		var shown []uint64
		err := a.Newest(t.Context(), 0, func(e audit.Entry) bool { shown = append(shown, e.Seq); return true })
		if err != nil || len(shown) != 4 {
			t.Errorf("%s: shown are %v, %v", name, shown, err)
		}
	}
}
