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

// halfOpen is a visitor's HTTP/1 connection on which the visitor may close its sending side
// after a request and wait for the answer, as `nc -N` and simple monitors do. TCP does not
// distinguish that from a visitor who has gone until something is sent, and http.Server, which
// reads while it serves a request, treats both as gone. halfOpen reports the end of the
// visitor's side only after nothing has been sent for a while: if the visitor has gone, the
// next writes fail. The delay is short, since most such visitors have gone, and the origin
// would be working for nobody.
type halfOpen struct {
	net.Conn               // a Conn, or TLS over one
	staying  time.Duration // how long a visitor who sends no more counts as present while nothing is sent to it
	writes   atomic.Int64  // writes begun and ended: odd while one is in progress

	// The lines of a request's head, used only by whoever serves the connection. net/http
	// holds some 80 bytes for each line but limits only the bytes.
	most  int  // lines allowed; zero: any number
	lines int  // lines so far
	whole bool // no head is being read

	mu     sync.Mutex
	until  time.Time     // the read deadline
	closed bool          // by Close
	look   chan struct{} // closed when one of these fields changes; nil while no Read waits
}

func (c *halfOpen) Read(b []byte) (int, error) {
	if c.most > 0 && c.lines > c.most {
		for i := range b { // pass it on as one endless line, which net/http answers with 431
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
			return n, nil // TLS returns the end together with the last bytes, and will return it again
		case len(b) == 1: // http.Server reads a single byte while it serves a request, and only then
			err = c.stay()
		}
	}
	return n, err
}

// head notes whether a request's head is complete, or the next one may begin.
func (c *halfOpen) head(whole bool) { c.whole, c.lines = whole, 0 }

// headLines returns how many lines a head of size bytes may have. Visitors' heads have a few
// dozen.
func headLines(size int) int { return max(256, size/128) }

// stay waits until the visitor counts as gone, and then returns io.EOF.
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

// change makes a change that a waiting Read must notice.
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

// CloseWrite closes the direction towards the visitor.
func (c *halfOpen) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// secureHalfOpen is a halfOpen over TLS; http.Server passes its TLS state to requests.
type secureHalfOpen struct{ *halfOpen }

// ConnectionState returns the result of the TLS handshake.
func (c secureHalfOpen) ConnectionState() tls.ConnectionState {
	return c.Conn.(*tls.Conn).ConnectionState()
}

// ForHTTP returns a visitor's connection in the form that http.Server needs. heads is the size
// of heads that the server accepts, and limit bounds the handshake. conf is nil if TLS is not
// used. If the handshake fails, the connection returned reports that error to the server as
// well. ForHTTP returns nil for a visitor that speaks HTTP without TLS.
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
	// In TLS 1.3 nothing is sent after the visitor's Finished, since the tickets went out
	// before. A visitor without TCP_NODELAY, such as PHP, Perl and wget, holds its request
	// back until the Finished is acknowledged.
	v.ackNow()
	switch conn.ConnectionState().NegotiatedProtocol {
	case "", "http/1.1", "http/1.0":
		return secureHalfOpen{&halfOpen{Conn: conn, staying: staying, most: headLines(heads)}}
	}
	return conn
}
