package visitor

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/edge/clienthello"
)

// halfOpen is a visitor's connection for HTTP/1, in which the visitor may end its
// own side after a request and wait for the answer, as `nc -N` and simple
// monitors do. TCP does not tell that from one who has gone until something is
// sent, and http.Server, which reads while it serves a request, takes both for
// gone. Here the end of the visitor's side is told to it only when nothing was
// sent for a while: who has gone makes the next writes fail. The while is
// short, since most have gone and the origin works for them for nothing.
type halfOpen struct {
	net.Conn               // a visitor, or TLS with one
	staying  time.Duration // how long who sends no more counts as there while nothing is sent to it
	writes   atomic.Int64  // begun and ended: odd while there is one

	// Of a request's head, for whoever serves the connection: net/http holds some 80
	// bytes for each line, and bounds the bytes alone.
	most  int  // lines it may have; zero: any number
	lines int  // it has by now
	whole bool // none is being read

	mu     sync.Mutex
	until  time.Time     // the deadline of reads
	closed bool          // by Close
	look   chan struct{} // closed when one of these changes; nil while no Read waits
}

func (c *halfOpen) Read(b []byte) (int, error) {
	if c.most > 0 && c.lines > c.most {
		for i := range b { // one line that does not end: so net/http says that it is too much (431)
			b[i] = 'x'
		}
		return len(b), nil
	}
	n, err := c.Conn.Read(b)
	if !c.whole {
		c.lines += bytes.Count(b[:n], []byte{'\n'})
	}
	if errors.Is(err, io.EOF) {
		switch {
		case n > 0:
			return n, nil // TLS has the end with the last bytes, and has it again
		case len(b) == 1: // http.Server reads a single byte while it serves a request, and only then
			err = c.stay()
		}
	}
	return n, err
}

// head notes that the head of a request is whole, or that the next may come.
func (c *halfOpen) head(whole bool) { c.whole, c.lines = whole, 0 }

// headLines is how many lines a head of so many bytes may have at most: visitors' have some
// dozens.
func headLines(size int) int { return max(256, size/128) }

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
	return c.Conn.Write(b)
}

func (c *halfOpen) SetReadDeadline(t time.Time) error {
	c.change(func() { c.until = t })
	return c.Conn.SetReadDeadline(t)
}

func (c *halfOpen) SetDeadline(t time.Time) error {
	c.change(func() { c.until = t })
	return c.Conn.SetDeadline(t)
}

func (c *halfOpen) Close() error {
	c.change(func() { c.closed = true })
	return c.Conn.Close()
}

// CloseWrite ends the direction towards the visitor.
func (c *halfOpen) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// secureHalfOpen is one with TLS, of which http.Server tells requests.
type secureHalfOpen struct{ *halfOpen }

// ConnectionState returns what was agreed on by the handshake.
func (c secureHalfOpen) ConnectionState() tls.ConnectionState {
	return c.Conn.(*tls.Conn).ConnectionState()
}

// ForHTTP returns a visitor's connection as http.Server is to have it, which takes heads
// of so many bytes, and has limit for a handshake. conf is nil where TLS is not spoken. Of a visitor whose
// handshake fails it is the one that says so there, too. It is nil for one who speaks
// HTTP without TLS.
func (v *Conn) ForHTTP(conf *tls.Config, heads int, limit, staying time.Duration) net.Conn {
	if conf == nil {
		return &halfOpen{Conn: v, staying: staying, most: headLines(heads)}
	}
	conn := tls.Server(v, conf)
	_ = conn.SetDeadline(time.Now().Add(limit))
	if err := conn.Handshake(); err != nil {
		if clienthello.IsPlainHTTP(err) {
			return nil
		}
		return conn
	}
	_ = conn.SetDeadline(time.Time{})
	// By TLS 1.3 nothing is sent behind the visitor's Finished: the tickets went before.
	// A visitor without TCP_NODELAY, as PHP, Perl and wget are, holds its request back
	// until that is acknowledged.
	v.ackNow()
	switch conn.ConnectionState().NegotiatedProtocol {
	case "", "http/1.1", "http/1.0":
		return secureHalfOpen{&halfOpen{Conn: conn, staying: staying, most: headLines(heads)}}
	}
	return conn
}
