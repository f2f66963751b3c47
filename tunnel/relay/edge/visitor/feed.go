package visitor

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Feed is a listener of connections that were looked at first: from a load
// balancer or not, too many from one address or not, for a tls endpoint or not.
type Feed struct {
	net.Listener
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewFeed returns a feed of what is accepted from ln.
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

// Serve calls sort with each connection of the listener, until it is closed, and
// returns when all are sorted.
func (f *Feed) Serve(ctx context.Context, sort func(net.Conn)) {
	var sorting sync.WaitGroup
	defer sorting.Wait()
	AcceptEach(ctx, f.Listener, f.closed, func(conn net.Conn) {
		sorting.Go(func() { sort(conn) })
	})
}

// Offer has Accept return a connection, which is closed if the feed is.
func (f *Feed) Offer(conn net.Conn) {
	select {
	case f.conns <- conn:
	case <-f.closed:
		conn.Close()
	}
}

// AcceptEach calls f with each connection until the listener is closed. It
// rides out a moment without file descriptors.
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

// RideOut waits a moment after a listener's call that failed, so that one that
// goes on failing is no loop that takes a processor. It reports whether the
// listener is still to be served.
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
