package edge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"adit/internal/lend"
	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin"
	"adit/tunnel/relay/edge/pages"
	"adit/tunnel/relay/edge/presence"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/edge/websocket"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// errTorn is of a request whose body its visitor has broken.
var errTorn = errors.New("the request's body did not come whole")

// handler serves the requests of one public HTTP listener.
type handler struct {
	edge   *Edge
	proxy  *httputil.ReverseProxy // to origins that are spoken to by HTTP/2
	secure bool
}

func (e *Edge) newProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			to := p.In.Context().Value(routeKey{}).(*route)
			message.Rewrite(p, to.target, &to.forward)
		},
		Transport:  roundTripper{},
		BufferPool: bufferPool{},
		// Bodies of known length are sent on after 20 ms at most; those without
		// and event streams at once, which net/http/httputil sees to.
		FlushInterval: 20 * time.Millisecond,
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			r.Context().Value(routeKey{}).(*route).failed(err)
		},
		ErrorLog: log.New(slogWriter{e.log}, "", 0),
	}
}

// bufferPool lends memory to net/http/httputil.
type bufferPool struct{}

func (bufferPool) Get() []byte  { return lend.TakeLarge() }
func (bufferPool) Put(b []byte) { lend.GiveLarge(b) }

type slogWriter struct{ log *slog.Logger }

func (w slogWriter) Write(b []byte) (int, error) {
	w.log.Debug("forward", "detail", strings.TrimSpace(string(b)))
	return len(b), nil
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e, start := h.edge, time.Now()
	e.admission.Working(r.Context())
	if !h.secure && e.cfg.Challenge != nil && e.cfg.Challenge(w, r) {
		return
	}
	remote, _ := netip.ParseAddrPort(r.RemoteAddr)
	remote = visitor.Clean(remote)
	client := message.Client(r, remote.Addr(), e.admission.Trusted)
	place, in := e.admission.Crowd(w, r, client, client == remote.Addr())
	if !in {
		return
	}
	defer place.Leave()
	h.answer(w, r, start, remote, client)
	place.End(w)
}

// answer answers a visitor at remote who is known as client.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, start time.Time, remote netip.AddrPort, client netip.Addr) {
	e := h.edge
	name, ok := message.Host(r.Host)
	if !ok {
		e.pages.Answer(w, r, pages.Page{Status: http.StatusBadRequest, Title: "The request names no host", Text: "Its Host header is missing or is not a name."})
		return
	}
	if h.secure && e.misdirected(r, name, remote.Addr()) {
		e.refuseMisdirected(w, r)
		return
	}
	if s := e.cfg.SignIn; s != nil && name == s.Host() {
		s.Return(w, r, e.pages.AnswerText)
		return
	}
	target, fits := message.Target(r)
	ep := h.find(name)
	if ep == nil {
		h.unknown(w, r, name, target)
		return
	}
	protocol := websocket.Protocol(r)
	switch {
	case protocol != "" && protocol != websocket.Name:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusNotImplemented, Title: "This protocol is not served here"})
		return
	case protocol == "" && r.Method == http.MethodConnect:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusMethodNotAllowed, Title: "CONNECT is not served here"})
		return
	// A method is a token (RFC 9110, section 9.1). By HTTP/2 net/http lets any
	// text pass, and a space in it would begin another request line.
	case !httpguts.ValidHeaderFieldName(r.Method):
		e.pages.Answer(w, r, pages.Page{Status: http.StatusBadRequest, Title: "The request's method is none"})
		return
	case !fits:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusBadRequest, Title: "The request names nothing of this site", Text: "Its target is neither a path nor a URL."})
		return
	case message.Loops(r, e.cfg.Name):
		e.pages.Answer(w, r, pages.Page{Status: http.StatusLoopDetected, Title: "This address leads back to itself", Text: "The service behind it asks the relay for it, and so on without end."})
		return
	case protocol == websocket.Name:
		w, r = websocket.Upgrade(w, r)
	}
	ep.Begin()
	defer ep.End()
	cw := &countedWriter{ResponseWriter: w, ep: ep, ctx: r.Context(), http10: !r.ProtoAtLeast(1, 1)}
	if h.secure && r.ProtoMajor < 3 {
		cw.altSvc = e.altSvc
	}
	to := &route{edge: e, endpoint: ep, target: target, grpc: r.ProtoMajor >= 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")}
	socket, _ := w.(*websocket.Writer)
	to.stream = socket != nil
	defer to.leave()
	count := func(n int) { cw.in.Add(int64(n)); ep.Meter.CountIn(n) }

	to.visit = origin.Visit{Visitor: netip.AddrPortFrom(client, remote.Port()), Authority: name}
	if local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr); local != nil {
		to.visit.Edge = visitor.AddrPort(local)
	}
	to.forward = message.WayOf(r, e.cfg.Name, remote.Addr(), e.admission.Trusted(remote.Addr()), h.secure)
	var took time.Duration
	refused := h.guard(cw, r, to, func(ctx context.Context, r *http.Request) {
		cw.ctx = ctx
		e.takeCookies(r)
		if socket != nil {
			to.waits = new(backlog.Held)
			socket.Stream = e.follow(to.waits, socket.Stream, r, -1, cw.presence)
			defer e.backlog.Forget(to.waits)
		}
		if r.Body != nil && r.Body != http.NoBody {
			if r.ProtoMajor == 1 {
				http.NewResponseController(w).EnableFullDuplex() // an origin may answer before it has read all
			}
			r = r.WithContext(ctx) // the server's own must stay as it is
			cw.body = newCountedBody(ctx, r, ep, count)
			if r.ProtoMajor > 1 && !cw.body.kept {
				to.waits = &cw.body.held
				cw.body.body = e.follow(to.waits, cw.body.body, r, r.ContentLength, cw.presence)
				defer e.backlog.Forget(to.waits)
			}
			to.body = cw.body
			r.Body = cw.body
		}
		h.serve(ctx, cw, r, to)
		took = time.Since(start)
		cw.settle()
	})
	if took == 0 {
		took = time.Since(start)
	}
	e.cfg.Record(ep, to.used, wire.Access{
		Time: start.UTC(), Endpoint: ep.ID(), Visitor: client.String(), User: to.forward.Who.Name(), Method: r.Method, Host: name, Path: r.URL.Path,
		Status: cw.code(), Refused: refused, BytesIn: cw.in.Load(), BytesOut: cw.out.Load(), Duration: took,
	})
	if cw.aborted { // the visitor must see a response that broke as broken
		panic(http.ErrAbortHandler)
	}
}

// requestWindow is how many bytes of requests by HTTP/2 one connection may send ahead
// of their readers; quicWindow is that by HTTP/3.
const requestWindow = 1 << 20

// follow has what comes with a request be given up if its origin does not take it.
func (e *Edge) follow(h *backlog.Held, body io.Reader, r *http.Request, length int64, visit *presence.Visit) io.Reader {
	if r.ProtoMajor == 3 {
		return e.backlog.Request(h, body, r.Context().Value(quicConnKey{}), quicWindow, length, visit)
	}
	return e.backlog.Request(h, body, visitor.FromContext(r.Context()), requestWindow, length, visit)
}

// serve forwards. The abort of a response that breaks half-way through is for
// ServeHTTP to pass on, after it is recorded.
func (h *handler) serve(ctx context.Context, w *countedWriter, r *http.Request, to *route) {
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
		h.proxied(ctx, w, r, to)
		return
	}
	err := h.edge.exchange(ctx, w, r, to)
	if err != nil && len(to.h2) > 0 && to.onward(ctx, r, err) && !w.begun() {
		h.proxied(ctx, w, r, to)
		return
	}
	if err != nil {
		h.fail(w, r, err)
	}
}

// fail answers with a page about err.
func (h *handler) fail(w *countedWriter, r *http.Request, err error) {
	if w.upload != nil {
		w.upload.soon()
	}
	if w.body != nil && !w.body.whole() {
		w.closeAfter() // said in the answer's head
	}
	if w.body.torn() { // whatever came of it further on
		err = fmt.Errorf("%w: %w", errTorn, err)
	}
	h.edge.explain(w, r, err)
}

// proxied forwards a request to backends that are spoken to by HTTP/2.
func (h *handler) proxied(ctx context.Context, w *countedWriter, r *http.Request, to *route) {
	ctx, cancel := context.WithCancel(context.WithValue(ctx, routeKey{}, to))
	defer cancel()
	to.giveUp = func() {
		cancel()
		w.GiveUp()
	}
	in := r.WithContext(ctx)
	to.failed = func(err error) {
		if to.h2first && len(to.h1) > 0 && to.onward(ctx, r, err) {
			err = h.edge.exchange(ctx, w, r, to)
		}
		if err != nil {
			h.fail(w, r, err)
		}
	}
	h.proxy.ServeHTTP(w, in)
}

// find returns the endpoint that serves a name on this listener.
func (h *handler) find(name string) *routing.Endpoint {
	if !h.secure {
		return h.edge.table.Domain(name, store.SlotPlain)
	}
	if ep := h.edge.table.Domain(name, store.SlotTLS); ep != nil && ep.Type == wire.TypeHTTPS {
		return ep
	}
	return nil
}

// unknown answers a request for a name that no endpoint serves on this listener.
func (h *handler) unknown(w http.ResponseWriter, r *http.Request, name, target string) {
	e := h.edge
	ep := e.table.Domain(name, store.SlotTLS)
	if h.secure && ep != nil { // its TLS is the origin's own, by another connection
		e.refuseMisdirected(w, r)
		return
	}
	if ep != nil && ep.Type == wire.TypeHTTPS && strings.HasPrefix(target, "/") {
		host := name
		if e.cfg.HTTPSPort != 0 && e.cfg.HTTPSPort != 443 {
			host = net.JoinHostPort(name, strconv.Itoa(e.cfg.HTTPSPort))
		}
		http.Redirect(w, r, "https://"+host+target, http.StatusPermanentRedirect)
		return
	}
	e.unknown.Add(1)
	switch { // its agent is connected
	case h.secure && e.table.Domain(name, store.SlotPlain) != nil:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusNotFound, Title: "There is no site at this address", Text: "The name is served by a tunnel of type http: its address begins with http://."})
		return
	case ep != nil && ep.Type == wire.TypeTLS:
		e.pages.Answer(w, r, pages.Page{Status: http.StatusNotFound, Title: "There is no site at this address", Text: "The name is served by a tunnel of type tls, which visitors must reach by TLS."})
		return
	}
	if e.claimed(name) {
		w.Header().Set("Retry-After", "5")
		e.pages.Answer(w, r, pages.Page{Status: http.StatusServiceUnavailable, Title: "This site is offline", Text: "The address is known here, but the computer that serves it is not connected now."})
		return
	}
	e.pages.Answer(w, r, pages.Page{Status: http.StatusNotFound, Title: "There is no site at this address", Text: "No tunnel serves this name here."})
}

// refuseCrowd answers a request that is one too many of its visitor's address.
func (e *Edge) refuseCrowd(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	e.pages.Answer(w, r, pages.Page{Status: http.StatusTooManyRequests, Title: http.StatusText(http.StatusTooManyRequests), Text: policy.Text(policy.RulePerAddress)})
}

// refuseMisdirected has a browser ask again by a connection of its own.
func (e *Edge) refuseMisdirected(w http.ResponseWriter, r *http.Request) {
	e.pages.Answer(w, r, pages.Page{Status: http.StatusMisdirectedRequest, Title: "This connection was made for another site", Text: "The site must be asked for by a connection of its own."})
}

// explain answers a visitor whose request could not be forwarded.
func (e *Edge) explain(w http.ResponseWriter, r *http.Request, err error) {
	var down *wire.OriginError
	var tooLarge *http.MaxBytesError
	var timeout net.Error
	p := pages.Page{Status: http.StatusBadGateway, Title: "The site did not answer", Text: "The connection to the computer that serves it broke."}
	switch {
	case errors.As(err, &down):
		// The reason names addresses of the network behind the agent: it is for
		// the agent's log and the relay's, not for strangers.
		p.Title, p.Text = "The site's service is down", "The computer that serves it is connected, but the local service behind it does not answer. Its owner finds the reason in adit's log."
	case errors.Is(err, origin.ErrNoAgent), errors.Is(err, net.ErrClosed):
		w.Header().Set("Retry-After", "5")
		p = pages.Page{Status: http.StatusServiceUnavailable, Title: "This site is offline", Text: "The address is known here, but the computer that serves it is not connected now."}
	case errors.As(err, &tooLarge):
		p = pages.Page{Status: http.StatusRequestEntityTooLarge, Title: "The request is too large", Text: "This site takes at most " + strconv.FormatInt(tooLarge.Limit, 10) + " bytes."}
	case errors.Is(err, context.Canceled):
		p = pages.Page{Status: 499, Title: "The request was given up"}
	case errors.Is(err, errTorn):
		p = pages.Page{Status: http.StatusBadRequest, Title: "The request did not come whole", Text: "What follows its header is not what the header announces."}
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		p = pages.Page{Status: http.StatusGatewayTimeout, Title: "The site took too long to answer", Text: "Its local service was reached but sent nothing in time."}
	}
	e.log.Debug("forward", "host", r.Host, "status", p.Status, "error", err)
	e.pages.Answer(w, r, p)
}

// countedWriter counts what a visitor is sent, also after a change of protocol.
type countedWriter struct {
	http.ResponseWriter
	ep           *routing.Endpoint
	ctx          context.Context // of the request, for writes that wait
	presence     *presence.Visit // of the visitor, once it has entered
	in, out      atomic.Int64
	status       int
	aborted      bool
	body         *countedBody // of the request; nil without one
	upload       *upload      // of body, by HTTP/1.1; nil without one
	altSvc       []string     // where else the site is; in place of the origin's own word
	ending       sync.Mutex   // guards the next two
	given, ended bool
	http10       bool // the visitor knows no interim answers (RFC 9110, section 15.2)
}

// Unwrap lets http.ResponseController reach the writer underneath.
func (w *countedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *countedWriter) code() int {
	if w.aborted && w.status == 0 {
		return 499
	}
	if w.status == 0 {
		return http.StatusOK
	}
	return w.status
}

func (w *countedWriter) WriteHeader(status int) {
	final := status >= 200 || status == http.StatusSwitchingProtocols
	if !final && w.http10 {
		return
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
		if w.altSvc != nil {
			header["Alt-Svc"] = w.altSvc
		} else {
			delete(header, "Alt-Svc")
		}
		if _, typed := header["Content-Type"]; !typed {
			header["Content-Type"] = nil // it is the origin's to say; no guess
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *countedWriter) Write(b []byte) (int, error) {
	return w.ep.Meter.Out().Write(w.ctx, writerFunc(w.write), b)
}

// write writes what has waited for its turn.
func (w *countedWriter) write(b []byte) (int, error) {
	n, err := w.ResponseWriter.Write(b)
	w.out.Add(int64(n))
	w.ep.Meter.CountOut(n)
	return n, err
}

// Hijack is asked for by a change of protocol (WebSocket).
func (w *countedWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.status = http.StatusSwitchingProtocols
	return &countedConn{Conn: conn, w: w}, rw, nil
}

type countedConn struct {
	net.Conn
	w *countedWriter
}

func (c *countedConn) Read(b []byte) (int, error) {
	n, err := c.w.ep.Meter.In().Read(c.w.ctx, c.Conn, b)
	c.w.in.Add(int64(n))
	c.w.ep.Meter.CountIn(n)
	return n, err
}

func (c *countedConn) Write(b []byte) (int, error) {
	n, err := c.w.ep.Meter.Out().Write(c.w.ctx, c.Conn, b)
	c.w.out.Add(int64(n))
	c.w.ep.Meter.CountOut(n)
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
