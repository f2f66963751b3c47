package edge

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// halfOpen is a visitor's connection for HTTP without TLS, in which the visitor
// may end its own side after a request and wait for the answer, as `nc -N` and
// simple monitors do. TCP does not tell that from one who has gone until
// something is sent, and http.Server, which reads while it serves a request,
// takes both for gone. Here the end of the visitor's side is told to it only
// when nothing was sent for a while: who has gone makes the next writes fail.
type halfOpen struct {
	*visitor
	staying time.Duration // how long who sends no more counts as there while nothing is sent to it
	writes  atomic.Int64  // begun and ended: odd while there is one

	mu     sync.Mutex
	until  time.Time     // the deadline of reads
	closed bool          // by Close
	look   chan struct{} // closed when one of these changes; nil while no Read waits
}

func (c *halfOpen) Read(b []byte) (int, error) {
	n, err := c.visitor.Read(b)
	// http.Server reads a single byte while it serves a request, and only then.
	if len(b) == 1 && errors.Is(err, io.EOF) {
		err = c.stay()
	}
	return n, err
}

// stay waits until the visitor may have gone, which it returns as io.EOF.
func (c *halfOpen) stay() error {
	quiet := time.NewTicker(c.staying)
	defer quiet.Stop()
	for sent := c.writes.Load(); ; {
		c.mu.Lock()
		until, closed, look := c.until, c.closed, make(chan struct{})
		c.look = look
		c.mu.Unlock()
		var deadline <-chan time.Time
		if !until.IsZero() {
			deadline = time.After(time.Until(until))
		}
		if closed {
			return net.ErrClosed
		}
		select {
		case <-look:
		case <-deadline:
			return os.ErrDeadlineExceeded
		case <-quiet.C:
			now := c.writes.Load()
			if now == sent && now%2 == 0 {
				return io.EOF
			}
			sent = now
		}
	}
}

// change makes a change that a Read which waits must see.
func (c *halfOpen) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	if c.look != nil {
		close(c.look)
		c.look = nil
	}
}

func (c *halfOpen) Write(b []byte) (int, error) {
	c.writes.Add(1)
	defer c.writes.Add(1)
	return c.visitor.Write(b)
}

func (c *halfOpen) SetReadDeadline(t time.Time) error {
	c.change(func() { c.until = t })
	return c.visitor.SetReadDeadline(t)
}

func (c *halfOpen) SetDeadline(t time.Time) error {
	c.change(func() { c.until = t })
	return c.visitor.SetDeadline(t)
}

func (c *halfOpen) Close() error {
	c.change(func() { c.closed = true })
	return c.visitor.Close()
}
