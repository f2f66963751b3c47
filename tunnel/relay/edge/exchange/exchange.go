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

// exchange is one request and its answer, by HTTP/1.1 over a stream. The goroutine that serves
// the visitor writes the request and reads the answer; another one sends the request's body.
type exchange struct {
	of  *Forwarder
	w   *Writer
	r   *http.Request
	ctx context.Context
	to  *Route

	backend *routing.Backend
	stream  *origin.Stream
	body    *upload     // nil without a body
	stop    func() bool // stops the end of ctx from breaking the stream
}

// exchange forwards a request to one of the endpoint's backends. If one cannot be reached and
// none of the request's body has been sent, it tries the next. If it returns an error, nothing
// has been answered yet; the error is for Config.Explain.
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

// begun reports whether the upload of the request's body has begun. If not, it never will, and
// another attempt may use the body.
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

// ask sends the request and reads the head of its answer. If a used stream turns out to have
// been closed by the origin, the request is sent again on a new stream, if it may be.
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
			want.New = true // whatever broke this connection would break all idle ones
			continue
		}
		return nil, x.because(err)
	}
}

// repeatable reports whether the request may be sent again even if an origin may have seen it
// (RFC 9110, section 9.2.2).
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

// because finds the cause of an error: that the visitor left, or that its body did not arrive.
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

// try makes one attempt over x.stream. Unless it returns an error, the end of the context
// breaks the stream until x.stop is called.
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
			s.Conn.Reset() // unblocks the writing of the body
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

// interim passes on an interim answer.
func (x *exchange) interim(answer *http.Response) {
	if answer.StatusCode == http.StatusContinue {
		if x.body == nil || !x.body.asked {
			return // nobody asked for it
		}
		defer x.body.proceed() // after the visitor has been told, so that net/http need not
	}
	if c := x.backend.Answers; c != nil {
		c.Interim(answer.Header)
	}
	x.w.interim(answer.StatusCode, answer.Header)
}
