package engine

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

// Stream is a stream that the cluster may be unable to answer for when the store is opened. It
// is opened by the first use that succeeds.
type Stream struct {
	open func(context.Context) (jetstream.Stream, error)

	mu   sync.Mutex
	have jetstream.Stream
}

// NewStream returns a Stream that is opened by calling open.
func NewStream(open func(context.Context) (jetstream.Stream, error)) *Stream {
	return &Stream{open: open}
}

// Ready opens the stream if that has not been done.
func (l *Stream) Ready(ctx context.Context) error {
	_, err := l.get(ctx)
	return err
}

func (l *Stream) get(ctx context.Context) (jetstream.Stream, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.have == nil {
		s, err := l.open(ctx)
		if err != nil {
			return nil, err
		}
		l.have = s
	}
	return l.have, nil
}

// Info and GetMsg are the methods of the stream.
func (l *Stream) Info(ctx context.Context) (*jetstream.StreamInfo, error) {
	s, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.Info(ctx)
}

func (l *Stream) GetMsg(ctx context.Context, seq uint64) (*jetstream.RawStreamMsg, error) {
	s, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.GetMsg(ctx, seq)
}

// Stream opens a stream. If the cluster cannot answer for it for a while, opening it is left
// to its first use, since a relay needs only names, policies and clients to start. make finds
// or creates the stream, with the given number of replicas; part is its name in the log.
func (e *Engine) Stream(ctx context.Context, name, part string, make func(ctx context.Context, js jetstream.JetStream, copies int) (jetstream.Stream, error)) (*Stream, error) {
	s := NewStream(func(ctx context.Context) (jetstream.Stream, error) {
		copies, err := e.copies(ctx, name)
		if err != nil {
			return nil, err
		}
		return make(ctx, e.js, copies)
	})
	return s, e.openSoon(ctx, part, s)
}

func (e *Engine) openSoon(ctx context.Context, part string, s *Stream) error {
	if e.server == nil {
		short, stop := context.WithTimeout(ctx, lateWait)
		defer stop()
		ctx = short
	}
	err := bucket.Patiently(ctx, func(ctx context.Context) error { return e.Fault(s.Ready(ctx)) })
	switch {
	case err == nil || e.server != nil:
	case bucket.IsFull(err):
		e.log.Warn("NATS has no room for a part of the store; the relay starts without it", "part", part, "error", err)
		return nil
	case !bucket.IsRefusal(err):
		e.log.Warn("the cluster does not answer for a part of the store; the relay starts without it", "part", part, "error", err)
		return nil
	}
	return err
}
