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

// Writer writes a visitor's answer and counts its bytes, even after a change of protocol.
type Writer struct {
	http.ResponseWriter
	meter *shape.Meter
	ctx   context.Context // of the request; ends writes that wait
	// Visit is set once the visitor has entered.
	Visit *presence.Visit
	// Refused is the rule that ended the visit before it was answered; empty means none.
	Refused string
	in, out atomic.Int64
	status  int
	aborted bool
	// answered is when the answer had been written; zero if nothing was forwarded.
	answered time.Time
	body     *countedBody // of the request; nil if there is none
	upload   *upload      // of the body, over HTTP/1.1; nil if there is none
	// AltSvc replaces the origin's own Alt-Svc.
	AltSvc       []string
	ending       sync.Mutex // guards the two fields below
	given, ended bool
	http10       bool // the visitor does not support interim answers (RFC 9110, section 15.2)
}

// NewWriter returns a Writer that answers r through w and counts with meter.
func NewWriter(w http.ResponseWriter, meter *shape.Meter, r *http.Request) *Writer {
	return &Writer{ResponseWriter: w, meter: meter, ctx: r.Context(), http10: !r.ProtoAtLeast(1, 1)}
}

// Unwrap lets http.ResponseController reach the underlying writer.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// CountIn counts n bytes of the request.
func (w *Writer) CountIn(n int) {
	w.in.Add(int64(n))
	w.meter.CountIn(n)
}

// Bytes returns the bytes of the request and of its answer so far.
func (w *Writer) Bytes() (in, out int64) { return w.in.Load(), w.out.Load() }

// Answered returns when the answer had been written, before the wait for the rest of the
// request's body. It is zero if nothing was forwarded.
func (w *Writer) Answered() time.Time { return w.answered }

// Aborted reports whether the answer broke off.
func (w *Writer) Aborted() bool { return w.aborted }

// Code returns the answer's status, or 499 if there is none because the visitor has gone.
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
		delete(w.Header(), "Content-Length") // RFC 9110, section 8.6; in a 304 it is another answer's
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
			header["Content-Type"] = nil // no guessing: the type is up to the origin
		}
	}
	if !final {
		// Over HTTP/2, net/http may still read the header after this returns, if the visitor
		// has just gone. With this field set, it works on a copy and leaves the field out.
		w.Header()["Content-Length"] = nil
		defer delete(w.Header(), "Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Writer) Write(b []byte) (int, error) {
	return w.meter.Out().Write(w.ctx, writerFunc(w.write), b)
}

// write writes b once its bandwidth is available.
func (w *Writer) write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.out.Add(int64(n))
	w.meter.CountOut(n)
	return n, err
}

// Hijack takes over the connection for a change of protocol (WebSocket).
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

// CloseWrite closes the direction towards the visitor.
func (c *countedConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return c.Conn.Close()
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// Moved returns how many bytes have moved, in either direction.
func (w *Writer) Moved() int64 { return w.in.Load() + w.out.Load() }

// GiveUp ends what is being written, after a delay in which a visitor who reads can still be
// told why.
func (w *Writer) GiveUp() {
	w.ending.Lock()
	defer w.ending.Unlock()
	if !w.ended && !w.given { // a second deadline would be later
		w.given = true
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(visitor.LingerTime)) // if this fails, the write ends with its connection
	}
}

// Over makes GiveUp harmless: the connection may already serve another request.
func (w *Writer) Over() {
	w.ending.Lock()
	defer w.ending.Unlock()
	w.ended = true
	if w.given {
		_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Time{})
	}
}

// settle deals with what is left of the request's body once its answer is written. Either the
// body is read to its end, or the connection closes after the answer, since what else arrives
// on it is not a request. With full duplex, net/http does neither: it goes on in the middle of
// a body whose reading failed, and drops a connection whose body nobody has read.
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
			// Over HTTP/2 and HTTP/3 the end of the answer follows this function, and a
			// visitor who has stopped sending because of the answer waits for it.
			ended := c.http1 && w.complete() && control.Flush() == nil && u.linger()
			u.release()
			if !ended {
				if control.SetReadDeadline(time.Now()) != nil {
					return // reading ends when the handler returns
				}
				<-u.done
				if c.http1 {
					// If net/http itself ran into that deadline, it takes the visitor for gone
					// and would abandon the next requests on the connection.
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

// complete reports whether a visitor has the whole answer before the handler returns, because
// no final chunk is needed.
func (w *Writer) complete() bool {
	return !w.aborted && w.Header().Get("Content-Length") != ""
}

// CloseAfter makes the server close an HTTP/1 connection after the answer, and announce that
// if the answer has not begun. MaxBytesReader does so for a body that is over its limit, and
// net/http has no other way.
func (w *Writer) CloseAfter() {
	server := w.ResponseWriter
	for {
		outer, ok := server.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		server = outer.Unwrap()
	}
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(server, io.NopCloser(strings.NewReader("x")), 0)) // one byte, which is over the limit
}
