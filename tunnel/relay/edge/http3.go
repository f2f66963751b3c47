package edge

import (
	"adit/tunnel/relay/edge/clientcert"
	"adit/tunnel/relay/edge/clienthello"
	"adit/tunnel/relay/edge/pages"
	"adit/tunnel/relay/edge/visitor"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

const (
	quicStreams = 250     // requests of one connection at once
	quicWindow  = 6 << 20 // of bytes that a connection may send ahead of its readers
	// quicUnproved is how many handshakes may be under way before a visitor must
	// first show that its address is no forgery (RFC 9000, section 8.1.2).
	quicUnproved = 64
	// quicLinger is how long the end of a response may be on its way to a visitor
	// before an edge that ends closes the connection.
	quicLinger = time.Second
)

// errPassed ends a handshake for a name whose TLS the relay does not end.
var errPassed = errors.New("there is no site of this name")

// quicServer serves HTTP/3 (RFC 9114), without early data: a request in it could
// be a replayed one (RFC 8470).
type quicServer struct {
	edge      *Edge
	handler   http.Handler
	server    *http3.Server
	transport *quic.Transport
	ctx       context.Context // of accepting
	stop      context.CancelFunc
	underWay  atomic.Int64 // handshakes
}

func (e *Edge) newQUICServer(handler http.Handler) *quicServer {
	q := &quicServer{edge: e, handler: handler}
	q.ctx, q.stop = context.WithCancel(context.Background())
	q.server = &http3.Server{
		Handler:        q,
		MaxHeaderBytes: e.limits.HeaderBytes,
		IdleTimeout:    e.limits.IdleTime,
		Logger:         e.log,
		ConnContext: func(ctx context.Context, conn *quic.Conn) context.Context {
			ctx = context.WithValue(ctx, http.ServerContextKey, e.servers[1])
			return context.WithValue(ctx, quicConnKey{}, newQUICConn(e, conn))
		},
	}
	q.transport = &quic.Transport{
		Conn:                e.cfg.QUIC,
		VerifySourceAddress: func(net.Addr) bool { return q.underWay.Load() >= quicUnproved },
		ConnContext:         q.admit,
	}
	return q
}

type handshakeKey struct{}

// admit counts a visitor's connection by its address, from its first packet to
// its end.
func (q *quicServer) admit(ctx context.Context, info *quic.ClientInfo) (context.Context, error) {
	addr := visitor.AddrPort(info.RemoteAddr).Addr()
	leave, err := q.edge.admission.Count(addr)
	if err != nil {
		return nil, err
	}
	q.underWay.Add(1)
	over := sync.OnceFunc(func() { q.underWay.Add(-1) })
	context.AfterFunc(ctx, func() {
		over()
		leave()
	})
	ctx = context.WithValue(ctx, credentialsKey{}, new(clientcert.Credentials))
	return context.WithValue(ctx, handshakeKey{}, over), nil
}

func (q *quicServer) config() (*tls.Config, *quic.Config) {
	limits := q.edge.limits
	base := &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if q.edge.table.PassThrough(clienthello.ServerName(hello.ServerName)) != nil {
				return nil, errPassed // its TLS is the origin's own, over TCP
			}
			return q.edge.certificate(hello)
		},
	}
	base.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) { return q.edge.asking(base, hello) }
	return http3.ConfigureTLSConfig(base), &quic.Config{
		HandshakeIdleTimeout: limits.HeaderTime / 2, // twice that is the whole handshake's
		// http3.Server ends those without a request after IdleTime. One with a request
		// may be silent for as long as its origin.
		MaxIdleTimeout:             max(limits.IdleTime, limits.OriginTime),
		MaxIncomingStreams:         quicStreams,
		MaxIncomingUniStreams:      8,
		MaxConnectionReceiveWindow: quicWindow,
	}
}

// serve takes connections until stopAccepting, and returns when they have ended.
func (q *quicServer) serve() error {
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
	return ignoreClosed(q.edge.cfg.QUIC.Close())
}

func (q *quicServer) stopAccepting() { q.stop() }

// serveConn serves a connection until it ends or the edge's life does.
func (q *quicServer) serveConn(conn *quic.Conn) {
	if over, ok := conn.Context().Value(handshakeKey{}).(func()); ok {
		over()
	}
	defer context.AfterFunc(q.edge.life, func() { closeQUIC(conn) })()
	defer closeQUIC(conn)
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
		_ = s.SetReadDeadline(time.Now().Add(q.edge.limits.HeaderTime)) // until ServeHTTP
		serving.Go(func() { raw.HandleRequestStream(s) })
	}
}

func closeQUIC(conn *quic.Conn) {
	_ = conn.CloseWithError(quic.ApplicationErrorCode(http3.ErrCodeNoError), "")
}

// ServeHTTP serves a request whose header is whole.
func (q *quicServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r, err := bodyOrNone(r)
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	if c, ok := r.Context().Value(quicConnKey{}).(*quicConn); ok {
		c.begin()
		defer c.answered()
	}
	if err != nil {
		q.edge.pages.Answer(w, r, pages.Page{Status: http.StatusRequestTimeout, Title: "The request did not come whole"})
		return
	}
	q.handler.ServeHTTP(w, r)
}

// bodyOrNone finds out whether a request that says no length has a body. Only the
// end of its stream tells, which comes behind the header and may come later. It is
// waited for where a body is seldom: an origin does not expect one in chunks
// there, not even an empty one. With another method a visitor may wait for the
// answer before it sends anything.
func bodyOrNone(r *http.Request) (*http.Request, error) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodConnect:
		return r, nil
	}
	if r.ContentLength >= 0 || r.Header["Expect"] != nil { // it is said, or the body waits to be asked for
		return r, nil
	}
	var first [1]byte
	_, err := io.ReadFull(r.Body, first[:])
	if err != nil && !errors.Is(err, io.EOF) {
		return r, fmt.Errorf("read the request's body: %w", err)
	}
	out := r.WithContext(r.Context()) // the server's own must stay as it is
	if err != nil {
		out.Body, out.ContentLength = http.NoBody, 0
		return out, nil
	}
	out.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first[:]), r.Body), r.Body}
	return out, nil
}

// quicConn tells the edge when a connection asks for nothing.
type quicConn struct {
	life      context.Context // of the connection
	admission *visitor.Admission
	resting   visitor.Resting
	cut       func()

	mu      sync.Mutex
	active  int       // requests
	retired bool      // it is to end when it asks for nothing
	ended   time.Time // when the last one was
	timer   *time.Timer
}

type quicConnKey struct{}

func newQUICConn(e *Edge, conn *quic.Conn) *quicConn {
	c := &quicConn{life: conn.Context(), admission: e.admission}
	c.cut = func() { c.end(conn) }
	context.AfterFunc(conn.Context(), func() { e.admission.Forget(&c.resting) })
	e.admission.Rest(&c.resting, c.cut)
	return c
}

func (c *quicConn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active++; c.active == 1 {
		c.admission.Work(&c.resting)
	}
}

func (c *quicConn) answered() {
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

// retire has the connection end when it asks for nothing.
func (c *quicConn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retired = true
}

// end closes the connection, if it still asks for nothing when the visitor has
// had time to get the end of the last response.
func (c *quicConn) end(conn *quic.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active > 0 || c.timer != nil {
		return
	}
	c.timer = time.AfterFunc(max(0, time.Until(c.ended.Add(quicLinger))), func() {
		c.mu.Lock()
		c.timer = nil
		idle := c.active == 0
		c.mu.Unlock()
		if idle {
			closeQUIC(conn)
		}
	})
}
