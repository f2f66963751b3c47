package visitor

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Feed is a net.Listener of connections that have been sorted first: PROXY headers read,
// addresses counted, connections for tls endpoints taken out.
type Feed struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewFeed returns a feed of the connections accepted from ln.
func NewFeed(ln net.Listener) *Feed {
	return &Feed{Listener: ln, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Accept returns the next connection for HTTP.
func (f *Feed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *Feed) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Listener.Close()
}

// Serve calls sort for each connection of the listener until that is closed, and returns when
// all calls have returned.
func (f *Feed) Serve(ctx context.Context, sort func(net.Conn)) {
	var sorting sync.WaitGroup
	defer sorting.Wait()
	AcceptEach(ctx, f.Listener, f.closed, func(conn net.Conn) {
		sorting.Go(func() { sort(conn) })
	})
}

// Offer makes Accept return a connection. If the feed is closed, it closes the connection.
func (f *Feed) Offer(conn net.Conn) {
	select {
	case f.conns <- conn:
	case <-f.closed:
		conn.Close()
	}
}

// AcceptEach calls f for each connection until the listener is closed. It survives a temporary
// lack of file descriptors.
func AcceptEach(ctx context.Context, ln net.Listener, closed <-chan struct{}, f func(net.Conn)) {
	for {
		conn, err := ln.Accept()
		if err == nil {
			f(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if !RideOut(ctx, closed) {
			return
		}
	}
}

// RideOut pauses after a failed call to a listener, so that repeated failures do not take up a
// processor. It reports whether the listener should still be served.
func RideOut(ctx context.Context, closed <-chan struct{}) bool {
	pause := time.NewTimer(50 * time.Millisecond)
	defer pause.Stop()
	select {
	case <-closed:
		return false
	case <-ctx.Done():
		return false
	case <-pause.C:
		return true
	}
}
