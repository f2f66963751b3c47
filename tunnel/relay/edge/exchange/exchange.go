package exchange

import (
	"context"
	"errors"
	"io"
	"net/http"

	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/routing"
)

var (
	errStatus  = errors.New("the status of the origin's answer is none")
	errInterim = errors.New("the origin sends interim answers without end")
)

// maxInterim is how many interim answers (1xx) a request may have.
const maxInterim = 32

// exchange is one request and its answer, by HTTP/1.1 over a stream. The
// request is written and the answer read by the goroutine that serves the
// visitor; a request's body has one more.
type exchange struct {
	of  *Forwarder
	w   *Writer
	r   *http.Request
	ctx context.Context
	to  *Route

	backend *routing.Backend
	stream  *origin.Stream
	body    *upload     // nil without a body
	stop    func() bool // forgets that the end of ctx ends the stream
}

// exchange forwards a request to one of the endpoint's backends. While nothing
// of the request's body is gone, the next is tried where one cannot be reached.
// The error is for Config.Explain: nothing is answered yet.
func (f *Forwarder) exchange(ctx context.Context, w *Writer, r *http.Request, to *Route) error {
	order := to.h1
	if len(order) == 0 {
		return origin.ErrNoAgent
	}
	x := &exchange{of: f, w: w, r: r, ctx: ctx, to: to}
	for i := 0; i < len(order); i++ {
		b := order[i]
		to.take(b)
		x.backend = b
		answer, err := x.ask()
		if err == nil {
			switch {
			case answer.StatusCode == http.StatusSwitchingProtocols:
				return x.switchOver(answer)
			case to.stream && answer.StatusCode < 300:
				return x.notSwitched()
			}
			x.answer(answer)
			return nil
		}
		if i == len(order)-1 {
			order = to.more(order)
		}
		if i == len(order)-1 || !f.tryAnother(to.Endpoint, b, err) || w.body.touched() || ctx.Err() != nil || !mayRepeat(r.Method, err) || w.begun() {
			return err
		}
	}
	return origin.ErrNoAgent
}

// begun reports whether the upload of the request's body has begun. If not, it
// never will, and the body is there for another.
func (w *Writer) begun() bool {
	if w.upload == nil {
		return false
	}
	if w.upload.release() {
		return true
	}
	w.upload = nil
	return false
}

// ask sends the request and reads the head of its answer. A stream that was
// used before may have been closed by the origin at this very moment: then the
// request goes once more, if it may, by a new one.
func (x *exchange) ask() (*http.Response, error) {
	want := origin.Want{
		Visit: x.to.Visit, Conn: x.to.Conn, Apart: x.backend.Unshared,
		SignsIn: message.SignsConnectionIn(x.r), Answers: message.AnswersSignIn(x.r), Once: !x.repeatable(),
	}
	for {
		s, err := x.backend.Origin().Stream(x.ctx, want)
		if err != nil {
			return nil, x.because(err)
		}
		x.stream = s
		answer, err := x.try()
		if err == nil {
			return answer, nil
		}
		s.Close()
		if s.Stale() && x.repeatable() && x.ctx.Err() == nil {
			want.New = true // what breaks its connection would break all that are kept
			continue
		}
		return nil, x.because(err)
	}
}

// repeatable reports whether the request may be sent again though an origin
// may have seen it (RFC 9110, section 9.2.2).
func (x *exchange) repeatable() bool {
	if x.r.ContentLength != 0 {
		return false
	}
	switch x.r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return x.r.Header["Idempotency-Key"] != nil
}

// because finds the reason of an error: the visitor who left, the visitor's
// body that did not come.
func (x *exchange) because(err error) error {
	if x.ctx.Err() != nil {
		return x.ctx.Err()
	}
	if x.body != nil {
		if cause := x.body.broken(); cause != nil {
			return cause
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// try makes one attempt over x.stream. Unless it ends in an error, the end of
// the context breaks the stream until x.stop is called.
func (x *exchange) try() (_ *http.Response, err error) {
	s := x.stream
	s.Fresh()
	x.body = nil
	x.stop = context.AfterFunc(x.ctx, s.Conn.Reset)
	defer func() {
		if err == nil {
			return
		}
		x.stop()
		if x.body != nil {
			s.Conn.Reset() // the body's write must end
			x.body.cut()
		}
	}()
	if err := x.writeHead(); err != nil {
		return nil, err
	}
	if x.r.ContentLength != 0 && x.w.body != nil {
		x.body = x.upload()
		x.w.upload = x.body
	} else {
		s.Patience(x.of.cfg.OriginTime)
	}
	for range maxInterim {
		answer, err := s.Answer(x.r)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode < 100 {
			return nil, errStatus
		}
		if answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols {
			x.answered()
			x.of.outward(answer.Header, x.backend, x.r, x.to)
			if c := x.backend.Answers; c != nil {
				c.Answer(answer.Header)
			}
			return answer, nil
		}
		x.interim(answer)
	}
	return nil, errInterim
}

// answered notes that the origin has begun its answer in time.
func (x *exchange) answered() {
	if x.body != nil {
		x.body.answered(x.stream)
	} else {
		x.stream.Answered()
	}
}

// interim passes an interim answer on.
func (x *exchange) interim(answer *http.Response) {
	if answer.StatusCode == http.StatusContinue {
		if x.body == nil || !x.body.asked {
			return // nobody asked for it
		}
		defer x.body.proceed() // behind the visitor's being told, so that net/http need not
	}
	if c := x.backend.Answers; c != nil {
		c.Interim(answer.Header)
	}
	x.w.interim(answer.StatusCode, answer.Header)
}
