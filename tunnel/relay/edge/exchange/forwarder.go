// Package exchange forwards HTTP requests to origins and returns their answers: by HTTP/1.1
// over its own streams (exchange.go, with request.go, upload.go and answer.go; switch.go
// handles changes of protocol), and by HTTP/2 (route.go). If an origin cannot be reached and
// none of the request's body has been sent, it tries the next one. Its callers find the
// endpoint, decide whether the request is let in, and answer it if no origin does.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"adit/internal/lend"
	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/webhook"
	"adit/tunnel/relay/edge/websocket"
	"adit/tunnel/wire"
)

// ErrTorn is the error for a request whose visitor has broken off its body.
var ErrTorn = errors.New("the request's body did not come whole")

// Config configures a Forwarder.
type Config struct {
	// OriginTime limits how long the head of an answer may take.
	OriginTime time.Duration
	// TakeOut is called when an origin is down; see routing.Table.TakeOut.
	TakeOut func(*routing.Endpoint, *routing.Backend)
	Backlog *backlog.Backlog
	// Window returns the window that a request's body shares with others of its connection;
	// see package backlog.
	Window func(*http.Request) (conn any, window int64)
	// Secure reports whether visitors who ask for a site without TLS are redirected to TLS.
	Secure func(name string) bool
	// Explain answers a visitor whose request could not be forwarded.
	Explain func(*Writer, *http.Request, error)
	Log     *slog.Logger
}

// Forwarder forwards requests to origins and returns their answers.
type Forwarder struct {
	cfg   Config
	proxy *httputil.ReverseProxy // for origins that are spoken to by HTTP/2
}

// New returns a forwarder. All fields of Config are required.
func New(cfg Config) *Forwarder {
	f := &Forwarder{cfg: cfg}
	f.proxy = f.newProxy()
	return f
}

// Forward forwards r and answers it through w, until ctx ends.
func (f *Forwarder) Forward(ctx context.Context, w *Writer, r *http.Request, to *Route) {
	w.ctx = ctx
	to.grpc = r.ProtoMajor >= 2 && isGRPC(r.Header.Get("Content-Type"))
	if socket, _ := w.ResponseWriter.(*websocket.Writer); socket != nil {
		to.stream, to.waits = true, new(backlog.Held)
		conn, window := f.cfg.Window(r)
		socket.Stream = f.cfg.Backlog.Request(to.waits, socket.Stream, conn, window, -1, w.Visit)
		defer f.cfg.Backlog.Forget(to.waits)
	}
	if r.Body != nil && r.Body != http.NoBody {
		if r.ProtoMajor == 1 {
			http.NewResponseController(w.ResponseWriter).EnableFullDuplex() // an origin may answer before it has read the whole request
		}
		r = r.WithContext(ctx) // the server's own request must not change
		w.body = newCountedBody(ctx, r, w)
		if r.ProtoMajor > 1 && !webhook.Kept(r) {
			to.waits = &w.body.held
			conn, window := f.cfg.Window(r)
			w.body.body = f.cfg.Backlog.Request(to.waits, w.body.body, conn, window, r.ContentLength, w.Visit)
			defer f.cfg.Backlog.Forget(to.waits)
		}
		to.body = w.body
		r.Body = w.body
	}
	f.serve(ctx, w, r, to)
	if w.answered.IsZero() {
		w.answered = time.Now()
	}
	w.settle()
}

// outward rewrites the URLs in an answer's header to the form that visitors know.
func (f *Forwarder) outward(h http.Header, b *routing.Backend, r *http.Request, to *Route) {
	if message.Leads(h) {
		b.Outward(h, r, &to.Way, func() bool { return f.cfg.Secure(to.Visit.Authority) })
	}
}

// isGRPC reports whether a content type is gRPC's, with or without a suffix after a plus sign
// that names the message format. gRPC-Web does not count, although it begins alike: browsers
// send it over any version of HTTP, and its services support HTTP/1.1.
func isGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || strings.IndexByte("+; ", rest[0]) >= 0)
}

// serve forwards the request. If the response breaks off, the caller must record that and then
// pass the abort on to the server.
func (f *Forwarder) serve(ctx context.Context, w *Writer, r *http.Request, to *Route) {
	defer func() {
		if p := recover(); p != nil {
			if err, ok := p.(error); !ok || !errors.Is(err, http.ErrAbortHandler) {
				panic(p)
			}
			w.aborted = true
		}
	}()
	to.choose(r)
	if len(to.h2) > 0 && (len(to.h1) == 0 || to.h2first) {
		f.proxied(ctx, w, r, to)
		return
	}
	err := f.exchange(ctx, w, r, to)
	if err != nil && len(to.h2) > 0 && f.onward(ctx, r, to, err) && !w.begun() {
		f.proxied(ctx, w, r, to)
		return
	}
	if err != nil {
		f.fail(w, r, err)
	}
}

// fail answers with a page that explains err.
func (f *Forwarder) fail(w *Writer, r *http.Request, err error) {
	if w.upload != nil {
		w.upload.soon()
	}
	if w.body != nil && !w.body.whole() {
		w.CloseAfter() // announced in the answer's head
	}
	if w.body.torn() { // whatever else happened to it
		err = fmt.Errorf("%w: %w", ErrTorn, err)
	}
	f.cfg.Explain(w, r, err)
}

// proxied forwards a request to backends that are spoken to by HTTP/2.
func (f *Forwarder) proxied(ctx context.Context, w *Writer, r *http.Request, to *Route) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, routeKey{}, to))
	defer cancel()
	to.ctx, to.w = ctx, w
	to.giveUp = func() {
		cancel()
		w.GiveUp()
	}
	in := r.WithContext(ctx)
	to.failed = func(err error) {
		if to.h2first && len(to.h1) > 0 && f.onward(ctx, r, to, err) {
			err = f.exchange(ctx, w, r, to)
		}
		if err != nil {
			f.fail(w, r, err)
		}
	}
	f.proxy.ServeHTTP(w, in)
}

func (f *Forwarder) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			to := p.In.Context().Value(routeKey{}).(*Route)
			message.Rewrite(p, to.Target, &to.Way)
		},
		Transport:  roundTripper{f},
		BufferPool: bufferPool{},
		// Bodies of known length are flushed within 20 ms. net/http/httputil flushes bodies of
		// unknown length and event streams at once.
		FlushInterval: 20 * time.Millisecond,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			r.Context().Value(routeKey{}).(*Route).failed(err)
		},
		ErrorLog: log.New(slogWriter{f.cfg.Log}, "", 0),
	}
}

// bufferPool provides memory to net/http/httputil.
type bufferPool struct{}

func (bufferPool) Get() []byte  { return lend.TakeLarge() }
func (bufferPool) Put(b []byte) { lend.GiveLarge(b) }

type slogWriter struct{ log *slog.Logger }

func (w slogWriter) Write(b []byte) (int, error) {
	w.log.Debug("forward", "detail", strings.TrimSpace(string(b)))
	return len(b), nil
}

// onward reports whether a request that could not be forwarded may go to a backend that speaks
// another version of HTTP.
func (f *Forwarder) onward(ctx context.Context, r *http.Request, to *Route, err error) bool {
	return ctx.Err() == nil && !to.body.touched() && mayRepeat(r.Method, err) && to.used != nil &&
		f.tryAnother(to.Endpoint, to.used, err)
}

// tryAnother reports whether err means that the backend cannot be reached. If the origin is
// down, it takes the backend out of turn.
func (f *Forwarder) tryAnother(ep *routing.Endpoint, b *routing.Backend, err error) bool {
	var down *wire.OriginError
	if errors.As(err, &down) {
		f.cfg.TakeOut(ep, b)
		return true
	}
	return errors.Is(err, origin.ErrNoAgent) || b.Agent.Session.Err() != nil
}
