package exchange

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"adit/internal/lend"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/visitor"
)

// endlessBody is how long a request's body may pause after an answer whose end the visitor has
// not yet received.
const endlessBody = time.Second

// answer sends the origin's answer to the visitor. If it breaks off, the visitor's response is
// aborted as well, with http.ErrAbortHandler.
func (x *exchange) answer(answer *http.Response) {
	whole := false
	defer func() { x.end(answer, whole) }()
	h, connection, changes := x.w.Header(), answer.Header["Connection"], x.backend.Answers
	for name, values := range message.EndToEnd(answer.Header, connection) {
		if old := h[name]; len(old) > 0 {
			values = append(old, values...)
		}
		h[name] = values
	}
	announced := len(answer.Trailer)
	if announced > 0 {
		names := make([]string, 0, announced)
		for name := range message.EndToEnd(answer.Trailer, connection) {
			if !changes.Has(name) {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			h.Add("Trailer", strings.Join(names, ", "))
		}
	}
	x.w.WriteHeader(answer.StatusCode)
	unwatched := x.watch()
	err := x.copyBody(answer)
	unwatched()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	whole = true
	if len(answer.Trailer) > 0 {
		// The flush makes the body chunked, however short it is.
		_ = http.NewResponseController(x.w).Flush() // a visitor that has gone needs no trailers
		for name, values := range message.EndToEnd(answer.Trailer, connection) {
			if changes.Has(name) {
				continue // a trailer would give the origin's value
			}
			if len(answer.Trailer) != announced {
				name = http.TrailerPrefix + name
			}
			h[name] = values
		}
	}
}

// copyBody copies the answer's body. Data is flushed at once, unless more of it is already
// available.
func (x *exchange) copyBody(answer *http.Response) error {
	if answer.Body == http.NoBody {
		return nil
	}
	control := http.NewResponseController(x.w)
	var mem lend.Buffer
	defer mem.Return()
	var total int64
	if answer.ContentLength != 0 && x.stream.Buffered() == 0 && x.r.Method != http.MethodHead {
		if err := control.Flush(); err != nil { // do not hold the head back until the body comes
			return err
		}
	}
	for {
		b := mem.Lend()
		n, err := answer.Body.Read(b)
		if n > 0 {
			total += int64(n)
			if _, err := x.w.Write(b[:n]); err != nil {
				return fmt.Errorf("write the answer: %w", err)
			}
			if total != answer.ContentLength && err == nil && x.stream.Buffered() == 0 {
				if err := control.Flush(); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			if x.ctx.Err() == nil {
				_ = control.Flush() // give the visitor what came before the error
			}
			return err
		}
		mem.Done(n)
	}
}

// end returns the stream to the pool if another request can use it.
func (x *exchange) end(answer *http.Response, whole bool) {
	s := x.stream
	if whole && x.body != nil && !x.body.finished() {
		x.rest(answer)
	}
	alive := x.stop()
	sent := x.body == nil || x.body.finished()
	if whole && sent && alive && !answer.Close && s.Buffered() == 0 && !x.misread() {
		s.Asks = answer.StatusCode == http.StatusUnauthorized && message.SignsConnectionIn(x.r) && message.AsksOn(answer.Header)
		x.backend.Origin().Keep(s)
		return
	}
	if !whole || !sent {
		s.Conn.Reset()
	}
	s.Close()
}

// misread reports whether the origin might take the request's body for the beginning of
// another visitor's request. Some servers do not look for a body with such methods (RFC 9110,
// section 9.3.1).
func (x *exchange) misread() bool {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete, http.MethodTrace:
		return x.body != nil && !x.backend.Unshared && !message.SignsConnectionIn(x.r)
	}
	return false
}

// rest waits for the rest of a request's body after the answer. An origin that does not
// announce that it closes the connection goes on reading, and often wants the data unless the
// request was a mistake: it may have answered while it was still writing the body to a file.
// An origin that refuses a visitor who is signing in on the connection needs that same
// connection for the next step.
func (x *exchange) rest(answer *http.Response) {
	_ = http.NewResponseController(x.w).Flush() // the visitor gets all of the answer before the wait
	x.w.answered = time.Now()
	switch {
	case answer.Close || answer.StatusCode >= 400 && !message.SignsConnectionIn(x.r):
		x.body.soon()
	case x.w.body.http1 && x.w.complete():
		x.body.goesOn(x.ctx, visitor.LingerTime)
	default: // the end of the answer follows the wait, and a visitor may wait for it before ending the body
		x.body.goesOn(x.ctx, endlessBody)
	}
}
