package exchange

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lend"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/visitor"
)

// errNotWanted ends the upload of a body that the origin did not wait for.
var errNotWanted = errors.New("the origin has answered without the body")

// upload sends a request's body to the origin, in a separate goroutine.
type upload struct {
	body  *countedBody
	asked bool          // the visitor waits for 100 Continue
	goOn  chan struct{} // closed when the body may be sent, or is not needed
	done  chan struct{}

	moved   atomic.Int64 // bytes sent
	reading atomic.Bool  // waiting for the visitor

	mu       sync.Mutex
	gone     bool // goOn is closed
	unwanted bool // the answer came before the body was asked for
	begun    bool // the body is being read
	settled  bool // the answer has begun, or will not come
	over     bool // released before it began: the body is left for others to read

	// err and source are set before done is closed.
	err    error
	source error // err, if the visitor caused it
}

// upload starts to send the request's body.
func (x *exchange) upload() *upload {
	u := &upload{body: x.w.body, asked: x.w.body.asked, goOn: make(chan struct{}), done: make(chan struct{})}
	s, limit, changes := x.stream, x.of.cfg.OriginTime, x.backend.Requests
	go func() {
		defer close(u.done)
		if !u.begin() {
			u.err = errNotWanted
			return
		}
		if u.err = u.send(s, x.r, changes); u.err != nil {
			if u.source != nil {
				s.Conn.Reset() // or the origin would take a part of the body for all of it
			} else {
				x.w.body.drain()
			}
			return
		}
		u.mu.Lock()
		defer u.mu.Unlock()
		if !u.settled {
			s.Patience(limit)
		}
	}()
	return u
}

// begin waits, for a limited time, for the origin to ask for the body, if the visitor waits
// for that. It reports whether to send the body.
func (u *upload) begin() bool {
	if u.asked {
		timer := time.NewTimer(origin.ContinueWait)
		defer timer.Stop()
		select {
		case <-u.goOn:
		case <-timer.C:
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.begun = !u.over && !(u.asked && u.unwanted)
	return u.begun
}

// proceed allows the body to be sent.
func (u *upload) proceed() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.gone {
		u.gone = true
		close(u.goOn)
	}
}

// answered notes that the origin has answered. The wait for the answer ends, and a body that
// was not asked for is not sent.
func (u *upload) answered(s *origin.Stream) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.settled = true
	s.Answered()
	if !u.gone {
		u.gone, u.unwanted = true, true
		close(u.goOn)
	}
}

// broken returns why the visitor's body did not arrive completely, or nil.
func (u *upload) broken() error {
	select {
	case <-u.done:
		return u.source
	default:
		return nil
	}
}

// finished reports whether the whole body has been sent.
func (u *upload) finished() bool {
	select {
	case <-u.done:
		return u.err == nil
	default:
		return false
	}
}

// declined reports whether the body is not sent because the origin answered before the visitor
// was told to send it.
func (u *upload) declined() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.asked && u.unwanted && !u.begun
}

// cut notes that the stream is broken. What arrives of the body is still read.
func (u *upload) cut() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.settled = true
}

// release prevents an upload from beginning, and reports whether it has begun. By then its
// stream must be broken or have the whole body.
func (u *upload) release() (begun bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.over = true
	if !u.gone {
		u.gone = true
		close(u.goOn)
	}
	return u.begun
}

// linger waits for the end of the upload, for a limited time, and reports whether it has
// ended.
func (u *upload) linger() bool { return u.within(visitor.LingerTime) }

// soon waits a moment and reports whether the upload has ended.
func (u *upload) soon() bool {
	select {
	case <-u.done:
		return true
	default:
	}
	return u.within(50 * time.Millisecond)
}

// goesOn waits for the end of the upload as long as it makes progress, until ctx ends. The
// visitor may pause for patience, and the origin for LingerTime. Waiting for shared bandwidth
// counts as progress.
func (u *upload) goesOn(ctx context.Context, patience time.Duration) {
	tick := time.NewTicker(endlessBody)
	defer tick.Stop()
	moved, since := u.moved.Load(), time.Now()
	for {
		select {
		case <-u.done:
			return
		case <-ctx.Done():
			return
		case now := <-tick.C:
			limit := visitor.LingerTime
			if u.reading.Load() {
				limit = patience
			}
			if n := u.moved.Load(); n != moved || u.body.shaped() {
				moved, since = n, now
			} else if now.Sub(since) >= limit {
				return
			}
		}
	}
}

func (u *upload) within(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-u.done:
		return true
	case <-timer.C:
		return false
	}
}

// send copies the body, in chunks if its length is unknown.
func (u *upload) send(s *origin.Stream, r *http.Request, changes *message.Changes) error {
	if r.ContentLength > 0 {
		n, err := u.copy(s.Conn, r.Body, nil)
		if err == nil && n < r.ContentLength {
			u.source = io.ErrUnexpectedEOF
			return u.source
		}
		return err
	}
	w := writers.Get().(*bufio.Writer)
	w.Reset(s.Conn)
	defer func() {
		w.Reset(nil)
		writers.Put(w)
	}()
	if _, err := u.copy(chunks{w}, r.Body, w.Flush); err != nil {
		return err
	}
	return message.WriteEnd(w, r, changes)
}

// copy copies the body and, if after is not nil, calls it after each part.
func (u *upload) copy(dst io.Writer, src io.Reader, after func() error) (total int64, err error) {
	var mem lend.Buffer
	defer mem.Return()
	for {
		b := mem.Lend()
		u.reading.Store(true)
		n, err := src.Read(b)
		u.reading.Store(false)
		if n > 0 {
			total += int64(n)
			if _, err := dst.Write(b[:n]); err != nil {
				return total, err
			}
			if after != nil {
				if err := after(); err != nil {
					return total, err
				}
			}
			u.moved.Add(int64(n))
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			u.source = err
			return total, err
		}
		mem.Done(n)
	}
}

// chunks writes each part as a chunk (RFC 9112, section 7.1).
type chunks struct{ w *bufio.Writer }

func (c chunks) Write(b []byte) (int, error) {
	const digits = "0123456789abcdef"
	var size [16]byte
	i := len(size)
	for n := len(b); n > 0; n >>= 4 {
		i--
		size[i] = digits[n&15]
	}
	_, _ = c.w.Write(size[i:]) // a bufio.Writer remembers its error
	_, _ = c.w.WriteString("\r\n")
	_, _ = c.w.Write(b)
	_, err := c.w.WriteString("\r\n")
	return len(b), err
}
