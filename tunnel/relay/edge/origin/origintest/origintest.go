// Package origintest provides fake agents whose origins are up or down, to test code that
// chooses among origins.
package origintest

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// Session is an agent's session. Its streams reach an origin that reads everything, or are
// told that the origin is down.
type Session struct {
	link.Session
	Down atomic.Bool
}

// Done is never closed.
func (s *Session) Done() <-chan struct{} { return nil }

// Err returns nil: the session never ends.
func (s *Session) Err() error { return nil }

// OpenStream opens a stream to the origin in its current state.
func (s *Session) OpenStream(context.Context) (link.Stream, error) {
	near, far := net.Pipe()
	var reason error
	if s.Down.Load() {
		reason = errors.New("connection refused")
	}
	go func() {
		defer far.Close()
		b := make([]byte, 1024)
		if _, err := far.Read(b); err != nil { // the preface
			return
		}
		if _, err := far.Write(wire.AppendAnswer(nil, reason)); err != nil || reason != nil {
			return
		}
		for {
			if _, err := far.Read(b); err != nil {
				return
			}
		}
	}()
	return Stream{near}, nil
}

// Stream is a stream over a connection.
type Stream struct{ net.Conn }

// CloseWrite closes both directions.
func (s Stream) CloseWrite() error { return s.Close() }

// Reset closes the stream.
func (s Stream) Reset() { s.Close() }

// Quiet always reports true.
func (s Stream) Quiet() bool { return true }
