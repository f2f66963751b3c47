package exchange

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/shape"
)

// Writer answers a visitor, and counts what it is sent, also after a change of protocol.
type Writer struct {
	http.ResponseWriter
	meter *shape.Meter
	ctx   context.Context // of the request, for writes that wait
	// Visit is the visitor's, once it has entered.
	Visit *presence.Visit
	// Refused is the rule that has ended the visit before it was answered; empty: none.
	Refused string
	in, out atomic.Int64
	status  int
	aborted bool
	// answered is when the answer was written; zero: nothing was forwarded.
	answered time.Time
	body     *countedBody // of the request; nil without one
	upload   *upload      // of body, by HTTP/1.1; nil without one
	// AltSvc is where else the site is, in place of the origin's own word.
	AltSvc       []string
	ending       sync.Mutex // guards the next two
	given, ended bool
	http10       bool // the visitor knows no interim answers (RFC 9110, section 15.2)
}

// NewWriter returns a writer that answers r by w, and counts by meter.
func NewWriter(w http.ResponseWriter, meter *shape.Meter, r *http.Request) *Writer {
	return &Writer{ResponseWriter: w, meter: meter, ctx: r.Context(), http10: !r.ProtoAtLeast(1, 1)}
}

// Unwrap lets http.ResponseController reach the writer underneath.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// CountIn counts bytes of the request.
func (w *Writer) CountIn(n int) {
	w.in.Add(int64(n))
	w.meter.CountIn(n)
}

// Bytes are those of the request and of its answer.
func (w *Writer) Bytes() (in, out int64) { return w.in.Load(), w.out.Load() }

// Answered is when the answer was written, before what was left of the request's body was
// waited for; zero: nothing was forwarded.
func (w *Writer) Answered() time.Time { return w.answered }

// Aborted reports whether the answer broke half-way through.
func (w *Writer) Aborted() bool { return w.aborted }

// Code is the answer's status; 499: there is none, for the visitor has gone.
func (w *Writer) Code() int {
	if w.aborted && w.status == 0 {
		return 499
	}
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

func (w *Writer) WriteHeader(status int) {
	final := status >= 200 || status == http.StatusSwitchingProtocols
	if !final && w.http10 {
		return
	}
	if status < 200 || status == http.StatusNoContent || status == http.StatusNotModified {
		delete(w.Header(), "Content-Length") // RFC 9110, section 8.6; of a 304 that of another answer
	}
	if asked := w.body != nil && w.body.asked; !final && (asked || status == http.StatusContinue) {
		if asked {
			w.body.word.interim(status, w.ResponseWriter.WriteHeader)
		}
		return
	}
	if final {
		w.status = status
		header := w.Header()
		if w.AltSvc != nil {
			header["Alt-Svc"] = w.AltSvc
		} else {
			delete(header, "Alt-Svc")
		}
		if _, typed := header["Content-Type"]; !typed {
			header["Content-Type"] = nil // it is the origin's to say; no guess
		}
	}
	if !final {
		// By HTTP/2 net/http may still read the header when the visitor has just gone, and
		// this returns: with this field it takes a copy, and leaves the field out.
		w.Header()["Content-Length"] = nil
		defer delete(w.Header(), "Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Writer) Write(b []byte) (int, error) {
	return w.meter.Out().Write(w.ctx, writerFunc(w.write), b)
}

// write writes what has waited for its turn.
func (w *Writer) write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.out.Add(int64(n))
	w.meter.CountOut(n)
	return n, err
}

// Hijack is asked for by a change of protocol (WebSocket).
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.status = http.StatusSwitchingProtocols
	return &countedConn{Conn: conn, w: w}, rw, nil
}

type countedConn struct {
	net.Conn
	w *Writer
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.w.meter.In().Read(c.w.ctx, c.Conn, b)
	c.w.CountIn(n)
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.w.meter.Out().Write(c.w.ctx, c.Conn, b)
	c.w.out.Add(int64(n))
	c.w.meter.CountOut(n)
	return n, err
}

// CloseWrite passes the end of one direction on.
func (c *countedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Conn.Close()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Moved is how many bytes have moved in either direction.
func (w *Writer) Moved() int64 { return w.in.Load() + w.out.Load() }

// GiveUp ends what is being written after a while, in which a visitor who reads
// can still be told why.
func (w *Writer) GiveUp() {
	w.ending.Lock()
	defer w.ending.Unlock()
	if !w.ended && !w.given { // a later one would put it off
		w.given = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(visitor.LingerTime)) // else it ends with its connection
	}
}

// Over ends the power of GiveUp: the connection may be another request's.
func (w *Writer) Over() {
	w.ending.Lock()
	defer w.ending.Unlock()
	w.ended = true
	if w.given {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// settle ends what is left of the request's body once its answer is written. It
// is read to its end, or the connection ends with the answer: whatever else
// comes on it is no request. (With full duplex net/http does neither: it goes on
// in the midst of a body whose reading broke, and gives up a connection whose
// body nobody read.)
func (w *Writer) settle() {
	c := w.body
	if c == nil {
		return
	}
	control := http.NewResponseController(w.ResponseWriter)
	if u := w.upload; u != nil {
		if c.asked {
			u.release()
		}
		if !u.soon() {
			// By HTTP/2 and HTTP/3 the end of the answer comes behind this, and whoever has
			// stopped sending because of the answer waits for it.
			ended := c.http1 && w.complete() && control.Flush() == nil && u.linger()
			u.release()
			if !ended {
				if control.SetReadDeadline(time.Now()) != nil {
					return // its reading ends with the handler
				}
				<-u.done
				if c.http1 {
					// Whoever of net/http met that deadline takes the visitor for gone, and
					// the connection's next requests for given up.
					w.CloseAfter()
				}
			}
		}
	}
	if !c.http1 || c.whole() {
		return
	}
	wait := time.Duration(0)
	if c.left() {
		wait = visitor.LingerTime
	}
	if control.SetReadDeadline(time.Now().Add(wait)) == nil && wait > 0 && w.complete() && control.Flush() == nil {
		c.drain()
	}
	if !c.whole() {
		w.CloseAfter()
	}
}

// complete reports whether a visitor has all of its answer before the handler
// has returned: there is no end of chunks to come.
func (w *Writer) complete() bool {
	return !w.aborted && w.Header().Get("Content-Length") != ""
}

// CloseAfter has the server close a connection of HTTP/1 after the answer, and
// say so if that has not begun. MaxBytesReader promises it for a body that is
// over its limit, and nothing else in net/http does.
func (w *Writer) CloseAfter() {
	server := w.ResponseWriter
	for {
		outer, ok := server.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		server = outer.Unwrap()
	}
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(server, io.NopCloser(strings.NewReader("x")), 0)) // it is over
}
