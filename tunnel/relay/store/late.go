package store

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"adit/tunnel/relay/store/bucket"
)

// lateStream is a stream that the cluster may have nobody to answer for as the
// store opens. It is opened with the first use that succeeds.
type lateStream struct {
	open func(context.Context) (jetstream.Stream, error)

	mu   sync.Mutex
	have jetstream.Stream
}

func (l *lateStream) get(ctx context.Context) (jetstream.Stream, error) {
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

// Info and GetMsg are those of the stream.
func (l *lateStream) Info(ctx context.Context) (*jetstream.StreamInfo, error) {
	s, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.Info(ctx)
}

func (l *lateStream) GetMsg(ctx context.Context, seq uint64) (*jetstream.RawStreamMsg, error) {
	s, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	return s.GetMsg(ctx, seq)
}

// openSoon opens a stream, or leaves it to its first use where the cluster has
// nobody to answer for it for a while: names, policies and clients are all that
// a relay cannot start without.
func (s *Store) openSoon(ctx context.Context, what string, l *lateStream) error {
	if s.server == nil {
		short, stop := context.WithTimeout(ctx, lateWait)
		defer stop()
		ctx = short
	}
	err := bucket.Patiently(ctx, func(ctx context.Context) error {
		_, err := l.get(ctx)
		return err
	})
	if err != nil && s.server == nil && !bucket.IsRefusal(err) {
		s.log.Warn("the cluster does not answer for a part of the store; the relay starts without it", "part", what, "error", err)
		return nil
	}
	return err
}
