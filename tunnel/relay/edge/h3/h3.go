// Package h3 serves visitors over HTTP/3: it admits their connections, reports when a
// connection is idle, and has requests answered in the same way as those over HTTP/1.1 and
// HTTP/2.
package h3

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http/httpguts"

	"adit/tunnel/relay/edge/clientcert"
	"adit/tunnel/relay/edge/visitor"
)

const (
	streams = 250     // requests of one connection at once
	Window  = 6 << 20 // bytes that a connection may send ahead of their readers
	// unproved is how many handshakes may be in progress before visitors must first prove that
	// their address is not forged (RFC 9000, section 8.1.2).
	unproved = 64
	// linger is how long a server that shuts down waits for the end of a response to reach the
	// visitor before it closes the connection.
	linger = time.Second
)

// Config configures a Server.
type Config struct {
	Conn       net.PacketConn // the server closes it
	ResetKey   [32]byte       // see quic.Transport; the same after a restart
	Handler    http.Handler
	HTTP       *http.Server // the server that handlers find in their context
	Admission  *visitor.Admission
	HeaderSize int           // of a request, in bytes
	HeaderTime time.Duration // to send a request's header, or for the handshake
	IdleTime   time.Duration // between the requests of a connection
	OriginTime time.Duration // for an origin's response header
	// Certificate and Ask are used in handshakes, like the functions of tls.Config.
	Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	Ask         func(base *tls.Config, hello *tls.ClientHelloInfo) (*tls.Config, error)
	// Life ends when connections must end.
	Life context.Context
	Log  *slog.Logger
}

// Server serves HTTP/3 (RFC 9114), without early data, since a request in early data might be
// a replay (RFC 8470).
type Server struct {
	cfg       Config
	server    *http3.Server
	transport *quic.Transport
	ctx       context.Context // for accepting
	stop      context.CancelFunc
	underWay  atomic.Int64 // number of handshakes
	taking    atomic.Int64 // number of bodies being read by unread.take
}

// New returns a server, which serves once Serve is called.
func New(cfg Config) *Server {
	q := &Server{cfg: cfg}
	q.ctx, q.stop = context.WithCancel(context.Background())
	q.server = &http3.Server{
		Handler:        q,
		MaxHeaderBytes: cfg.HeaderSize,
		IdleTimeout:    cfg.IdleTime,
		Logger:         cfg.Log,
		ConnContext: func(ctx context.Context, conn *quic.Conn) context.Context {
			ctx = context.WithValue(ctx, http.ServerContextKey, cfg.HTTP)
			return NewContext(ctx, newConn(cfg.Admission, conn))
		},
	}
	q.transport = &quic.Transport{
		Conn:                cfg.Conn,
		StatelessResetKey:   (*quic.StatelessResetKey)(&q.cfg.ResetKey),
		VerifySourceAddress: func(net.Addr) bool { return q.underWay.Load() >= unproved },
		ConnContext:         q.admit,
	}
	return q
}

type handshakeKey struct{}

// admit counts a visitor's connection by its address, from the first packet until the
// connection ends.
func (q *Server) admit(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	addr := visitor.AddrPort(info.RemoteAddr).Addr()
	leave, err := q.cfg.Admission.Count(addr)
	if err != nil {
		return nil, err
	}
	q.underWay.Add(1)
	over := sync.OnceFunc(func() { q.underWay.Add(-1) })
	context.AfterFunc(ctx, func() {
		over()
		leave()
	})
	return context.WithValue(clientcert.NewContext(ctx), handshakeKey{}, over), nil
}

func (q *Server) config() (*tls.Config, *quic.Config) {
	base := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: q.cfg.Certificate}
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return q.cfg.Ask(base, hello) }
	return http3.ConfigureTLSConfig(base), &quic.Config{
		HandshakeIdleTimeout: q.cfg.HeaderTime / 2, // the whole handshake may take twice that
		// http3.Server closes connections without a request after IdleTime. One with a request
		// may be silent for as long as its origin.
		MaxIdleTimeout:             max(q.cfg.IdleTime, q.cfg.OriginTime),
		MaxIncomingStreams:         streams,
		MaxIncomingUniStreams:      8,
		MaxConnectionReceiveWindow: Window,
	}
}

// Serve accepts connections until StopAccepting is called, and returns when they have ended.
func (q *Server) Serve() error {
	tlsConf, conf := q.config()
	ln, err := q.transport.Listen(tlsConf, conf)
	if err != nil {
		return fmt.Errorf("serve HTTP/3: %w", err)
	}
	var conns sync.WaitGroup
	for {
		conn, err := ln.Accept(q.ctx)
		if err != nil {
			break
		}
		conns.Go(func() { q.serveConn(conn) })
	}
	<-q.ctx.Done()
	ln.Close()
	conns.Wait()
	q.transport.Close()
	if err := q.cfg.Conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("serve visitors: %w", err)
	}
	return nil
}

// StopAccepting makes the server accept no more connections.
func (q *Server) StopAccepting() { q.stop() }

// serveConn serves a connection until it, or Config.Life, ends.
func (q *Server) serveConn(conn *quic.Conn) {
	if over, ok := conn.Context().Value(handshakeKey{}).(func()); ok {
		over()
	}
	defer context.AfterFunc(q.cfg.Life, func() { closeConn(conn) })()
	defer closeConn(conn)
	raw, err := q.server.NewRawServerConn(conn)
	if err != nil {
		return
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() {
		for {
			s, err := conn.AcceptUniStream(conn.Context())
			if err != nil {
				return
			}
			serving.Go(func() { raw.HandleUnidirectionalStream(s) })
		}
	})
	for {
		s, err := conn.AcceptStream(conn.Context())
		if err != nil {
			return
		}
		_ = s.SetReadDeadline(time.Now().Add(q.cfg.HeaderTime)) // until ServeHTTP
		serving.Go(func() { raw.HandleRequestStream(s) })
	}
}

func closeConn(conn *quic.Conn) {
	_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

// ServeHTTP serves a request whose header is complete.
func (q *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if c := FromContext(r.Context()); c != nil {
		c.begin()
		defer c.answered()
	}
	left := bodyOf(r)
	q.cfg.Handler.ServeHTTP(w, withTrailer(r))
	left.take(w, &q.taking)
	dropTrailer(w, r)
	if r.Method == http.MethodHead { // otherwise quic-go sends a length of 0 when the length is unknown
		_ = http.NewResponseController(w).Flush() // a visitor who has gone needs no head
	}
}

// dropTrailer removes the trailer of an answer if the visitor does not say that it accepts
// trailers (RFC 9110, section 6.5.1). Browsers do not show trailers to pages, and in Chromium
// 156 such an answer fails over HTTP/3.
func dropTrailer(w http.ResponseWriter, r *http.Request) {
	if httpguts.HeaderValuesContainsToken(r.Header["Te"], "trailers") {
		return
	}
	header := w.Header()
	for _, names := range header["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			header.Del(strings.TrimSpace(name))
		}
	}
	for name := range header {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(header, name)
		}
	}
}

// withTrailer returns a request whose announced trailer is filled in once its body has been
// read, as in net/http. quic-go replaces the trailer of its own request at that point, which
// copies of the request do not see.
func withTrailer(r *http.Request) *http.Request {
	if len(r.Trailer) == 0 {
		return r
	}
	out := r.WithContext(r.Context())
	out.Body = &trailed{ReadCloser: r.Body, of: r, announced: r.Trailer}
	return out
}

type trailed struct {
	io.ReadCloser
	of        *http.Request
	announced http.Header
}

func (b *trailed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		for name := range b.announced {
			b.announced[name] = b.of.Trailer[name]
		}
	}
	return n, err
}

// Conn is a visitor's connection that reports when it is idle.
type Conn struct {
	life      context.Context // ends with the connection
	admission *visitor.Admission
	resting   visitor.Resting
	cut       func()

	mu      sync.Mutex
	active  int       // requests
	retired bool      // to be closed once it is idle
	ended   time.Time // when the last request ended
	timer   *time.Timer
}

type connKey struct{}

// NewContext returns a context for the requests on a connection, from which FromContext gets
// it.
func NewContext(ctx context.Context, c *Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// FromContext returns the connection that a request came on, or nil if it was not HTTP/3.
func FromContext(ctx context.Context) *Conn {
	c, _ := ctx.Value(connKey{}).(*Conn)
	return c
}

func newConn(admission *visitor.Admission, conn *quic.Conn) *Conn {
	c := &Conn{life: conn.Context(), admission: admission}
	c.cut = func() { c.end(conn) }
	context.AfterFunc(conn.Context(), func() { admission.Forget(&c.resting) })
	admission.Rest(&c.resting, c.cut)
	return c
}

func (c *Conn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active++; c.active == 1 {
		c.admission.Work(&c.resting)
	}
}

func (c *Conn) answered() {
	c.mu.Lock()
	c.active--
	idle, retired := c.active == 0, c.retired
	c.ended = time.Now()
	c.mu.Unlock()
	if idle {
		c.admission.Rest(&c.resting, c.cut)
	}
	if retired {
		c.cut()
	}
}

// Retire makes the connection close once it is idle.
func (c *Conn) Retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
}

// end closes the connection if it is still idle after the visitor has had time to receive the
// end of the last response.
func (c *Conn) end(conn *quic.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active > 0 || c.timer != nil {
		return
	}
	c.timer = time.AfterFunc(max(0, time.Until(c.ended.Add(linger))), func() {
		c.mu.Lock()
		c.timer = nil
		idle := c.active == 0
		c.mu.Unlock()
		if idle {
			closeConn(conn)
		}
	})
}
