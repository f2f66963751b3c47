package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lend"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/wire"
)

// Errors that pick the page a visitor sees.
var (
	errNoAgent = errors.New("no agent serves this address now")
	errIdle    = errors.New("no byte was moved for too long")
)

const (
	openTime   = 10 * time.Second // to open a stream
	answerTime = 20 * time.Second // for an agent's answer
	// originIdle is how long an unused connection to an origin is kept. Common
	// origins close theirs after 5 s, and a request that meets the closing
	// cannot always be sent again.
	originIdle = 4 * time.Second
	// maxIdle is how many of them a backend keeps. A crowd that is larger has
	// most of its requests wait for a new one.
	maxIdle = 1024
)

// visit is what the agent is told of a visitor with each stream.
type visit struct {
	visitor, edge netip.AddrPort
	authority     string
	client        string // that visits a private tunnel
}

// openStream opens a stream to a backend; the preface goes out with the first write.
func (e *Edge) openStream(ctx context.Context, b *Backend, kind wire.StreamKind, v visit) (*originConn, error) {
	preface, err := wire.AppendPreface(nil, wire.Preface{
		Visitor: v.visitor, Edge: v.edge, Endpoint: b.Number, Kind: kind, Authority: v.authority, Path: b.path, Client: v.client,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	s, err := b.Agent.Session.OpenStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoAgent, err)
	}
	return &originConn{Stream: s, preface: preface, done: make(chan struct{})}, nil
}

// originConn is a stream to an origin. The preface is sent with the first bytes
// written, and the agent's answer is taken off the first bytes read, so that a
// new connection costs no round trip.
type originConn struct {
	link.Stream

	write   sync.Mutex
	preface []byte

	read     sync.Mutex
	answered bool
	ended    atomic.Bool   // one direction came to its end
	done     chan struct{} // closed when the answer is read
	refusal  error         // set before done is closed
}

func (c *originConn) Write(b []byte) (int, error) {
	c.write.Lock()
	defer c.write.Unlock()
	if c.preface == nil {
		n, err := c.Stream.Write(b)
		return n, c.explain(err)
	}
	skip := len(c.preface)
	n, err := c.Stream.Write(append(c.preface, b...))
	c.preface = nil
	return max(n-skip, 0), c.explain(err)
}

// explain finds the reason of a write that broke: an agent that cannot reach
// its origin says so and closes the stream, which may break a write before the
// reason is read.
func (c *originConn) explain(err error) error {
	if err == nil {
		return nil
	}
	const patience = 2 * time.Second
	if c.read.TryLock() { // nobody reads
		defer c.read.Unlock()
		c.SetReadDeadline(time.Now().Add(patience))
		defer c.SetReadDeadline(time.Time{})
		var down *wire.OriginError
		if errors.As(c.answer(), &down) {
			return down
		}
		return err
	}
	wait := time.NewTimer(patience)
	defer wait.Stop()
	select {
	case <-c.done:
		if c.refusal != nil {
			return c.refusal
		}
	case <-wait.C:
	}
	return err
}

func (c *originConn) Read(b []byte) (int, error) { return c.ReadDirect(b, nil) }

// ReadDirect implements link.DirectReader.
func (c *originConn) ReadDirect(b []byte, take func([]byte) int) (int, error) {
	return c.receive(func() (int, error) {
		if d, ok := c.Stream.(link.DirectReader); ok && take != nil {
			return d.ReadDirect(b, take)
		}
		return c.Stream.Read(b)
	})
}

// ReadLent implements link.LentReader.
func (c *originConn) ReadLent(l *lend.Buffer, take func([]byte) int) (int, error) {
	return c.receive(func() (int, error) {
		b, err := link.ReadDirect(c.Stream, l, take)
		return len(b), err
	})
}

// receive reads the origin's bytes: it takes the agent's answer off first.
func (c *originConn) receive(read func() (int, error)) (int, error) {
	c.read.Lock()
	defer c.read.Unlock()
	if err := c.answer(); err != nil {
		return 0, err
	}
	n, err := read()
	if errors.Is(err, io.EOF) {
		c.ended.Store(true)
	}
	return n, err
}

// CloseWrite ends the direction towards the origin.
func (c *originConn) CloseWrite() error {
	c.ended.Store(true)
	return c.Stream.CloseWrite()
}

// Close gives up what was not read or written to its end, so that neither the
// agent nor the origin waits for somebody who has gone.
func (c *originConn) Close() error {
	if !c.ended.Load() {
		c.Stream.Reset()
	}
	return c.Stream.Close()
}

// answer reads the agent's answer if it is not yet read; c.read is held.
func (c *originConn) answer() error {
	if c.answered {
		return c.refusal
	}
	err := wire.ReadAnswer(c.Stream)
	c.answered = true
	var absent interface{ NoAgent() bool }
	switch {
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	case errors.As(err, &absent) && absent.NoAgent():
		err = fmt.Errorf("%w: %w", errNoAgent, err)
	}
	c.refusal = err
	close(c.done)
	return err
}

// begin sends the preface alone and waits for the answer.
func (c *originConn) begin() error {
	if _, err := c.Write(nil); err != nil {
		return err
	}
	c.SetReadDeadline(time.Now().Add(answerTime))
	c.read.Lock()
	err := c.answer()
	c.read.Unlock()
	c.SetReadDeadline(time.Time{})
	return err
}

// newTransport returns the pool of streams for HTTP/2 down to the origin, which
// gRPC needs. For that the agent is given a raw stream.
func (e *Edge) newTransport(b *Backend) *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var v visit
			to, _ := ctx.Value(routeKey{}).(*route)
			if to != nil {
				v = to.visit
			}
			c, err := e.openStream(ctx, b, wire.StreamRaw, v)
			if err != nil {
				return nil, err
			}
			if to == nil || to.only {
				return c, nil
			}
			// There is another to turn to: the request's body must not go to an
			// origin that is down.
			given := context.AfterFunc(ctx, func() { c.Reset() })
			defer given()
			if err := c.begin(); err != nil {
				c.Reset()
				c.Close()
				return nil, err
			}
			return c, nil
		},
		DisableCompression:     true,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        originIdle,
		ResponseHeaderTimeout:  e.limits.OriginTime,
		ExpectContinueTimeout:  continueWait,
		MaxResponseHeaderBytes: maxAnswerHead,
		WriteBufferSize:        16 << 10,
		ReadBufferSize:         16 << 10,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: backlog.AnswerWindow},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// roundTripper sends a request to one of the backends that speak HTTP/2. While
// nothing of the request's body is gone, the next is tried where one cannot be
// reached.
type roundTripper struct{}

// route is what the handler has found for a request.
type route struct {
	endpoint *Endpoint
	target   string // what the visitor asks for
	forward  message.Way
	visit    visit
	grpc     bool
	body     *countedBody  // of the request; nil without one
	waits    *backlog.Held // of what the visitor sends; nil by HTTP/1, and without a body
	stream   bool          // a change of protocol was asked for by extended CONNECT
	h1, h2   []*Backend    // by how they are spoken to, in the order in which to try them
	h2first  bool
	only     bool        // there is one backend
	giveUp   func()      // ends the visit
	failed   func(error) // answers a visitor whose request could not be forwarded by HTTP/2
	used     *Backend    // who answered, or was tried last
	held     *Backend    // whose visitors this is counted among
}

// choose sorts the endpoint's backends.
func (to *route) choose(r *http.Request) {
	list := to.endpoint.pickFor(to.target)
	to.only = len(list) < 2
	upgrade := message.Upgrade(r, to.stream) != ""
	for i, b := range list {
		if to.grpc || b.HTTP2 && !upgrade {
			to.h2first = to.h2first || i == 0
			if to.h2 == nil {
				to.h1, to.h2 = slices.Clone(list[:i]), make([]*Backend, 0, len(list))
			}
			to.h2 = append(to.h2, b)
		} else if to.h2 != nil {
			to.h1 = append(to.h1, b)
		}
	}
	if to.h2 == nil {
		to.h1 = list
	}
}

// onward reports whether a request that could not be forwarded may go to a
// backend that is spoken to in another way.
func (to *route) onward(ctx context.Context, r *http.Request, err error) bool {
	return ctx.Err() == nil && !to.body.touched() && mayRepeat(r.Method, err) && to.used != nil &&
		to.endpoint.edge.tryAnother(to.endpoint, to.used, err)
}

// take counts the request among b's visitors in place of another's.
func (to *route) take(b *Backend) {
	to.leave()
	to.used, to.held = b, b
	b.tunnel().busy.Add(1)
	if to.waits != nil {
		to.waits.TakenBy(b.Agent)
	}
}

func (to *route) leave() {
	if to.held != nil {
		to.held.tunnel().busy.Add(-1)
		to.held = nil
	}
}

type routeKey struct{}

func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	to := r.Context().Value(routeKey{}).(*route)
	order := to.h2
	for i, b := range order {
		to.take(b)
		out, end := to.attempt(r)
		if b.HostHeader != "" && b.HostHeader != r.Host || b.Unshared || b.Requests != nil || b.Answers != nil || b.prefix != "" {
			out = out.Clone(b.Answers.Follow(r.Context()))
			if b.HostHeader != "" {
				out.Host = b.HostHeader
			}
			if b.Unshared { // the transport pools by this name
				out.URL.Host = to.visit.visitor.String()
			}
			if b.Requests != nil {
				b.Requests.Request(out)
			}
			if b.prefix != "" {
				b.strip(out, to.target)
			}
		}
		if to.body != nil {
			to.body.onward = out.Trailer // the copy's, which this backend is sent; nobody reads the body now
		}
		resp, err := b.h2.RoundTrip(out)
		if err == nil && resp.StatusCode < 100 {
			resp.Body.Close()
			return nil, errStatus
		}
		if err == nil {
			resp.Body = to.endpoint.edge.backlog.Answer(resp.Body, b.Agent, to.giveUp)
			if b.Answers != nil {
				b.Answers.Proxied(resp)
			}
			return resp, nil
		}
		end()
		if i == len(order)-1 || !to.endpoint.edge.tryAnother(to.endpoint, b, err) || to.body.touched() || r.Context().Err() != nil || !mayRepeat(r.Method, err) {
			return nil, err
		}
	}
	return nil, errNoAgent
}

// tryAnother reports whether err says that the backend cannot be reached, and
// takes one whose origin is down out of turn.
func (e *Edge) tryAnother(ep *Endpoint, b *Backend, err error) bool {
	var down *wire.OriginError
	if errors.As(err, &down) {
		e.takeOut(ep, b)
		return true
	}
	return errors.Is(err, errNoAgent) || b.Agent.Session.Err() != nil
}

// mayRepeat reports whether a request may be sent to another backend: what has
// perhaps reached an origin may only if it says that twice is as good as once
// (RFC 9110, section 9.2.2).
func mayRepeat(method string, err error) bool {
	var down *wire.OriginError
	if errors.Is(err, errNoAgent) || errors.As(err, &down) {
		return true
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete:
		return true
	}
	return false
}
