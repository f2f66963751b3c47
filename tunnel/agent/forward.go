package agent

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lend"
	"adit/internal/socketerr"
	"adit/internal/sockio"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

const (
	prefaceWait = 10 * time.Second
	// lingering is how long an origin may be silent after the edge has closed a
	// stream of HTTP requests: nobody may be reading any more. It is also how long
	// the edge may take to read what an origin answered that has closed.
	lingering = 30 * time.Second
	// requestWait and maxUnserved bound what is read of a request that is not
	// served, for the inspector.
	requestWait = 250 * time.Millisecond
	maxUnserved = 128 << 10
	// noticeWait is how long an origin that resets its connection has to be found
	// to take no more of a request, and answerWait how long after that, or after
	// what the origin answered last, the edge has to end the stream by itself.
	noticeWait = 20 * time.Millisecond
	answerWait = time.Second
)

// acceptStreams serves the visitors that the relay sends, until the session ends.
func (l *live) acceptStreams(ctx context.Context, wg *sync.WaitGroup) {
	for {
		stream, err := l.session.AcceptStream(ctx)
		if err != nil {
			return
		}
		wg.Go(func() { l.visit(ctx, stream) })
	}
}

// visit serves one stream.
func (l *live) visit(ctx context.Context, stream link.Stream) {
	defer stream.Close()
	stream.SetReadDeadline(time.Now().Add(prefaceWait))
	preface, err := wire.ReadPreface(stream)
	if err != nil {
		l.agent.log.Debug("stream without a preface", "error", err)
		stream.Reset()
		return
	}
	stream.SetReadDeadline(time.Time{})
	t, era := l.lookup(ctx, preface.Endpoint)
	if t == nil {
		_ = l.answer(stream, errors.New("this tunnel is not running"))
		return
	}
	own := t.route.Load()
	r := own.at(preface.Path)
	if r == nil { // it has changed since the relay was told
		r, err = own, fmt.Errorf("this tunnel has no path %s", preface.Path)
	}
	var origin halfCloser
	if err == nil {
		origin, err = l.agent.dialOrigin(ctx, r, preface.Kind, proxyHeader(r.spec.ProxyProtocol, preface.Visitor, preface.Edge))
	}
	if err != nil {
		l.agent.complain(r, err.Error())
		l.agent.notTaken(r, preface, stream, err)
		_ = l.answer(stream, err)
		return
	}
	defer origin.Close()
	if err := l.answer(stream, nil); err != nil {
		return
	}
	l.agent.pipe(&pipe{tunnel: t, route: r, stream: stream, origin: origin}, era, preface)
}

// answer tells the edge whether the origin is connected.
func (l *live) answer(stream link.Stream, err error) error {
	stream.SetWriteDeadline(time.Now().Add(prefaceWait))
	_, writeErr := stream.Write(wire.AppendAnswer(nil, err))
	stream.SetWriteDeadline(time.Time{})
	return writeErr
}

// halfCloser is a connection whose sending side ends by itself: *sockio.Conn,
// *tls.Conn, link.Stream.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// dialOrigin connects to a tunnel's local service for a stream of that kind, and
// sends header, if there is one, before all else: it is read before TLS begins. Its
// errors are for people to read.
func (a *Agent) dialOrigin(ctx context.Context, r *route, kind wire.StreamKind, header []byte) (halfCloser, error) {
	conn, err := a.tryOrigin(ctx, r, kind, header)
	if ctx.Err() == nil { // else it was not waited for
		a.reached(r, err)
	}
	return conn, err
}

func (a *Agent) tryOrigin(ctx context.Context, r *route, kind wire.StreamKind, header []byte) (halfCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, a.cfg.OriginTimeout)
	defer cancel()
	addrs, err := a.resolveOrigin(ctx, r.spec.LocalIP, r.spec.LocalPort)
	if err != nil {
		return nil, err
	}
	var dialer net.Dialer
	var conn net.Conn
	var addr netip.AddrPort
	for i, next := range addrs {
		share, done := ctx, context.CancelFunc(func() {})
		if more := len(addrs) - i; more > 1 { // the last address gets all the time that is left
			share, done = context.WithTimeout(ctx, a.cfg.OriginTimeout/time.Duration(len(addrs)))
		}
		addr = next
		var failed error
		conn, failed = dialer.DialContext(share, "tcp", addr.String())
		done()
		if failed == nil {
			err = nil
			break
		}
		if i == 0 || errors.Is(failed, socketerr.Refused) { // it says most: one family may not be there at all
			err = failed
		}
	}
	if err != nil {
		return nil, describeOrigin(err, r.local)
	}
	if len(header) > 0 {
		if _, err := conn.Write(header); err != nil {
			_ = conn.Close()
			return nil, describeOrigin(err, r.local)
		}
	}
	tcp := sockio.New(conn.(*net.TCPConn))
	if r.spec.LocalScheme != schemeHTTPS {
		return tcp, nil
	}
	conf := originTLS(r.spec, addr.Addr())
	if kind == wire.StreamRaw { // the edge speaks HTTP/2 on it
		conf.NextProtos = []string{"h2"}
	}
	secure := tls.Client(tcp, conf)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, describeTLS(err, r.local, a.cfg.OriginTimeout)
	}
	return secure, nil
}

// originTLS verifies the certificate of an origin elsewhere. One on this machine
// or in its private network hardly ever has a certificate that could be
// verified, and its path is not a stranger's.
func originTLS(spec TunnelSpec, ip netip.Addr) *tls.Config {
	name := spec.LocalIP
	if host, _, err := net.SplitHostPort(spec.HostHeader); err == nil {
		name = host
	} else if spec.HostHeader != "" {
		name = spec.HostHeader
	}
	near := ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	return &tls.Config{ServerName: name, InsecureSkipVerify: near, NextProtos: []string{"http/1.1"}}
}

// pipe is one visitor's connection with its origin.
type pipe struct {
	tunnel *tunnel
	route  *route
	stream link.Stream
	origin halfCloser
	once   sync.Once
}

// abort ends both sides at once.
func (p *pipe) abort() {
	p.once.Do(func() {
		p.stream.Reset()
		if tcp, ok := p.origin.(*sockio.Conn); ok {
			_ = tcp.SetLinger(0) // the origin learns that it was cut, not ended
		}
		p.origin.Close()
	})
}

// pipe copies both ways until both are over, for a visitor that came in era.
func (a *Agent) pipe(p *pipe, era int, preface wire.Preface) {
	t, stream, origin := p.tunnel, p.stream, p.origin
	t.conns.add(p, p.route, era)
	defer t.conns.remove(p)
	if p.route.path != "" && !t.leads(p.route) {
		p.abort() // it was cut while its origin was dialled
	}
	t.counters.open.Add(1)
	t.counters.total.Add(1)
	a.active()
	defer a.active()
	defer t.counters.open.Add(-1)

	tap := a.tap(p.route, preface)
	defer tap.Close()
	var closed atomic.Bool         // by the edge: nobody reads the origin's answer for long
	spurned := make(chan struct{}) // closed when the origin takes no more of a request
	copied := make(chan struct{})  // closed when no more of it is copied
	var answered time.Time         // when the origin last did
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(copied)
		// The inspector must know of a request before the origin can answer it.
		err := copyHalf(origin, stream, func(b []byte) {
			t.counters.in.Add(int64(len(b)))
			a.in.Add(int64(len(b)))
			tap.FromVisitor(b)
		}, nil)
		tap.VisitorEnded()
		var unwritten *writeError
		if preface.Kind == wire.StreamHTTP && errors.As(err, &unwritten) {
			stream.SetReadDeadline(time.Now().Add(lingering))
			close(spurned)
			err = copyHalf(io.Discard, stream, nil, nil)
			if err == nil {
				return
			}
		}
		if err != nil || origin.CloseWrite() != nil {
			p.abort()
			return
		}
		if preface.Kind == wire.StreamHTTP {
			closed.Store(true)
			origin.SetReadDeadline(time.Now().Add(lingering))
		}
	})
	err := copyHalf(stream, origin, func(b []byte) {
		// Before the visitor can have it and ask how much there was.
		t.counters.out.Add(int64(len(b)))
		a.out.Add(int64(len(b)))
	}, func(b []byte) {
		tap.FromOrigin(b)
		answered = time.Now()
		if closed.Load() {
			origin.SetReadDeadline(time.Now().Add(lingering))
		}
	})
	tap.OriginEnded()
	if err != nil && preface.Kind == wire.StreamHTTP {
		p.hearOut(answered, spurned, copied)
	}
	if err != nil || stream.CloseWrite() != nil {
		p.abort()
	}
	wg.Wait()
}

// hearOut lets the edge have the answer of an origin that has reset its connection
// because it did not want the rest of the request, as a refusal of a large upload:
// with the stream the answer would be given up, too (RFC 9112, section 9.6). Whether
// it was that is seen by the next that the visitor sends, who may pause: so what was
// answered a moment ago is waited for in any case.
func (p *pipe) hearOut(answered time.Time, spurned, copied <-chan struct{}) {
	notice := time.NewTimer(max(noticeWait, time.Until(answered.Add(answerWait))))
	defer notice.Stop()
	select {
	case <-notice.C:
	case <-copied: // the edge has ended it
	case <-spurned:
		p.stream.SetReadDeadline(time.Now().Add(answerWait))
		<-copied
	}
}

// tap returns what shows the inspector one connection; nil where nothing is to be
// shown.
func (a *Agent) tap(r *route, preface wire.Preface) *inspect.Tap {
	if !r.inspect {
		return nil
	}
	meta := inspect.Meta{TunnelID: r.id, TunnelName: r.name, Type: r.spec.Type, Visitor: preface.Visitor.String(), Client: preface.Client, Secret: r.secret, Path: r.path, Prefix: r.prefix}
	switch {
	case preface.Kind == wire.StreamHTTP:
		return a.inspector.HTTP(meta)
	case web(r.spec.Type):
		return a.inspector.HTTP2(meta) // it is what the edge speaks on a raw stream to such a tunnel
	}
	return a.inspector.Flow(meta)
}

// notTaken shows the inspector a visitor whom the origin did not take. The
// request comes with the preface, and what is not read of it before the edge has
// its answer is gone.
func (a *Agent) notTaken(r *route, preface wire.Preface, stream link.Stream, why error) {
	tap := a.tap(r, preface)
	if tap == nil {
		return
	}
	defer tap.Close()
	status := 0
	if preface.Kind == wire.StreamHTTP {
		shared := r.spec.Mode != wire.ModeStandard // another agent may take the visitor, and is not to wait for long
		if !shared {
			status = http.StatusBadGateway
		}
		stream.SetReadDeadline(time.Now().Add(requestWait))
		buf := make([]byte, 4<<10)
		for heard := 0; heard < maxUnserved; {
			n, err := stream.Read(buf)
			tap.FromVisitor(buf[:n])
			heard += n
			if begun, whole := tap.Asked(); whole || begun && shared || err != nil {
				break
			}
		}
		stream.SetReadDeadline(time.Time{})
	}
	tap.Refuse(status, why.Error())
}

// writeError is an error of copyHalf that came from dst.
type writeError struct{ error }

func (e *writeError) Unwrap() error { return e.error }

// copyHalf copies src to dst until src ends. Each part is shown to before, if
// that is set, before it is written, and to after, if that is, once it is. It
// returns nil if src ended with io.EOF.
func copyHalf(dst io.Writer, src io.Reader, before, after func([]byte)) error {
	var mem lend.Buffer
	defer mem.Return()
	shown := 0 // of what comes next, what before was shown already
	show := func(b []byte) {
		if len(b) > shown {
			if before != nil {
				before(b[shown:])
			}
			shown = len(b)
		}
	}
	var take func([]byte) int
	if try, ok := dst.(interface{ TryWrite([]byte) int }); ok && after == nil {
		take = func(b []byte) int {
			show(b)
			n := try.TryWrite(b)
			shown -= n
			return n
		}
	}
	for {
		b, err := link.ReadDirect(src, &mem, take)
		if len(b) > 0 {
			show(b)
			shown -= len(b)
			if _, err := dst.Write(b); err != nil {
				return &writeError{err}
			}
			if after != nil {
				after(b)
			}
		}
		mem.Done(len(b))
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
