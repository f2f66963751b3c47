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

// endlessBody is how long a request's body may stand still behind an answer whose end the
// visitor does not have yet.
const endlessBody = time.Second

// answer gives the visitor the origin's answer. What breaks now breaks the
// visitor's response too, by http.ErrAbortHandler.
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
		// The body must go in chunks, however short it is.
		_ = http.NewResponseController(x.w).Flush() // a visitor that has gone needs no trailers
		for name, values := range message.EndToEnd(answer.Trailer, connection) {
			if changes.Has(name) {
				continue // it would say what the origin said
			}
			if len(answer.Trailer) != announced {
				name = http.TrailerPrefix + name
			}
			h[name] = values
		}
	}
}

// copyBody moves the answer's body. What has come is sent on at once, unless
// more of it is there already.
func (x *exchange) copyBody(answer *http.Response) error {
	if answer.Body == http.NoBody {
		return nil
	}
	control := http.NewResponseController(x.w)
	var mem lend.Buffer
	defer mem.Return()
	var total int64
	if answer.ContentLength != 0 && x.stream.Buffered() == 0 && x.r.Method != http.MethodHead {
		if err := control.Flush(); err != nil { // the head does not wait for the body
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
				_ = control.Flush() // the visitor has what came before it broke
			}
			return err
		}
		mem.Done(n)
	}
}

// end gives the stream back if another request may use it.
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

// misread reports whether the origin may take the request's body for the beginning of
// another visitor's request: there are servers that look for none behind such a method (RFC
// 9110, section 9.3.1).
func (x *exchange) misread() bool {
	switch x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodDelete, http.MethodTrace:
		return x.body != nil && !x.backend.Unshared && !message.SignsConnectionIn(x.r)
	}
	return false
}

// rest waits for the rest of the request's body, behind its answer. An origin that does not
// say that it closes the connection reads on, and where the request was no mistake it often
// wants what it reads: it answered while it wrote that to a file. One that refuses a visitor
// who signs in by the connection has the next step come by that one, and no other.
func (x *exchange) rest(answer *http.Response) {
	_ = http.NewResponseController(x.w).Flush() // the visitor has all of the answer before it is waited for
	x.w.answered = time.Now()
	switch {
	case answer.Close || answer.StatusCode >= 400 && !message.SignsConnectionIn(x.r):
		x.body.soon()
	case x.w.body.http1 && x.w.complete():
		x.body.goesOn(x.ctx, visitor.LingerTime)
	default: // the end of the answer comes behind this, and a visitor may wait for that to end the body
		x.body.goesOn(x.ctx, endlessBody)
	}
}
