// Package origin reaches origins, the local services that tunnels publish, over streams of
// their agents' sessions: raw streams (Conn), pooled streams for HTTP/1.1 requests (Stream),
// and a transport for HTTP/2. Its callers choose the origin of a visitor, and decide what is
// sent and what happens to the answer.
package origin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/backlog"
	"adit/tunnel/wire"
)

// ErrNoAgent means that no session could open a stream.
var ErrNoAgent = errors.New("no agent serves this address now")

const (
	openTime   = 10 * time.Second // to open a stream
	answerTime = 20 * time.Second // for an agent to answer
	// originIdle is how long an unused connection to an origin is kept. Common origins close
	// theirs after 5 s, and a request that arrives as that happens cannot always be sent
	// again.
	originIdle = 4 * time.Second
	// onceIdle is the same for requests that cannot be sent again. Some origins close
	// connections after 2 s, and a request in transit at that moment is lost. A new connection
	// costs the visitor no round trip.
	onceIdle = time.Second
	// makeRoom is how long a new connection waits for an answer before unused ones are closed
	// for its sake.
	makeRoom = 300 * time.Millisecond
	// makeRoomFor is how long that goes on for one connection. An answer that takes longer is
	// usually delayed on purpose, as in long polling, and the origin has accepted the
	// connection.
	makeRoomFor = 10 * time.Second
	// maxIdle is how many unused connections a backend keeps. With more visitors than that,
	// most requests wait for a new connection.
	maxIdle = 1024
)

// ContinueWait is how long a visitor's body waits for the origin to say that it wants it (RFC
// 9110, section 10.1.1).
const ContinueWait = time.Second

// Visit is what the agent is told about a visitor with each stream.
type Visit struct {
	Visitor, Edge netip.AddrPort
	Authority     string
	Client        string // the client that is visiting a private tunnel
}

// Config says where an Origin is and how to reach it.
type Config struct {
	Session  link.Session
	Endpoint uint32 // the tunnel's number within the session
	Path     string // selects an origin of a tunnel with paths; empty: the tunnel's own
	// HeadTime limits how long the head of an HTTP/2 answer may take.
	HeadTime time.Duration
	// Asks returns, from the context of an HTTP/2 request, the visitor for whom a stream is
	// opened and whether there is no other origin to try.
	Asks func(context.Context) (v Visit, only bool)
}

// Origin is a local service behind an agent's session, with the connections to it that are
// kept between requests.
type Origin struct {
	cfg  Config
	idle idleStreams     // for HTTP/1.1, which the agent may inspect
	h2   *http.Transport // for gRPC, and for origins that are spoken to by HTTP/2
}

// New returns an origin without any connections.
func New(cfg Config) *Origin {
	o := &Origin{cfg: cfg}
	o.h2 = o.transport()
	return o
}

// Close closes the streams that no request is using.
func (o *Origin) Close() {
	o.idle.close()
	o.h2.CloseIdleConnections()
}

// Open opens a stream to the origin. The preface is sent with the first write.
func (o *Origin) Open(ctx context.Context, kind wire.StreamKind, v Visit) (*Conn, error) {
	preface, err := wire.AppendPreface(nil, wire.Preface{
		Visitor: v.Visitor, Edge: v.Edge, Endpoint: o.cfg.Endpoint, Kind: kind, Authority: v.Authority, Path: o.cfg.Path, Client: v.Client,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	s, err := o.cfg.Session.OpenStream(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoAgent, err)
	}
	return &Conn{Stream: s, preface: preface, done: make(chan struct{})}, nil
}

// Want says which stream an HTTP/1.1 request needs.
type Want struct {
	Visit Visit
	// Conn identifies the visitor's connection. An address and port would not do, since
	// somebody else may have them once the connection has ended.
	Conn any
	// Apart asks for a stream that carries only this visitor's requests.
	Apart bool
	// SignsIn says that the origin may from now on attribute everything on the stream to the
	// same user. The stream then belongs to this visitor, who gets it again.
	SignsIn bool
	// Answers says that the request is a step of a sign-in, in answer to a challenge that the
	// origin has sent on the stream.
	Answers bool
	// Once says that the request cannot be sent again if the origin closes the stream just
	// then.
	Once bool
	// New asks for a stream that has not been used before.
	New bool
}

// owner identifies the visitor that a stream belongs to. The zero value means that anybody may
// use it.
type owner struct {
	visitor netip.AddrPort // a load balancer's connection carries several visitors
	conn    any
}

func (w Want) owner() owner { return owner{w.Visit.Visitor, w.Conn} }

// Stream returns a stream for an HTTP/1.1 request: an idle one, or a new one.
func (o *Origin) Stream(ctx context.Context, w Want) (*Stream, error) {
	var s *Stream
	if !w.New {
		s = o.idle.take(w)
	}
	if s == nil {
		conn, err := o.Open(ctx, wire.StreamHTTP, w.Visit)
		if err != nil {
			return nil, err
		}
		s = newStream(conn, &o.idle)
		s.begin()
	}
	if w.Apart || w.SignsIn {
		s.of, s.signs = w.owner(), s.signs || w.SignsIn
	}
	s.Asks = false
	return s, nil
}

// Signs reports whether there is an idle stream on which a visitor has signed in, or is about
// to.
func (o *Origin) Signs(v Visit, conn any) bool { return o.idle.signs(owner{v.Visitor, conn}) }

// Keep keeps a stream for another request. Its answer must have been read to the end.
func (o *Origin) Keep(s *Stream) { o.idle.put(s) }

// RoundTrip sends a request by HTTP/2.
func (o *Origin) RoundTrip(r *http.Request) (*http.Response, error) { return o.h2.RoundTrip(r) }

// Reaches reports whether the agent can connect to the origin.
func (o *Origin) Reaches(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := o.Open(ctx, wire.StreamRaw, Visit{})
	if err != nil {
		return false
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Reset() })()
	return c.Begin() == nil
}

// transport returns the HTTP/2 transport. HTTP/2 reaches all the way to the origin, as gRPC
// needs, so the agent is given raw streams.
func (o *Origin) transport() *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			v, only := o.cfg.Asks(ctx)
			c, err := o.Open(ctx, wire.StreamRaw, v)
			if err != nil {
				return nil, err
			}
			if only {
				return c, nil
			}
			// There is an alternative, so the request's body must not be sent to an origin
			// that is down.
			given := context.AfterFunc(ctx, func() { c.Reset() })
			defer given()
			if err := c.Begin(); err != nil {
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
		ResponseHeaderTimeout:  o.cfg.HeadTime,
		ExpectContinueTimeout:  ContinueWait,
		MaxResponseHeaderBytes: maxAnswerHead,
		WriteBufferSize:        16 << 10,
		ReadBufferSize:         16 << 10,
		Protocols:              new(http.Protocols),
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerStream: backlog.AnswerWindow},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t
}
