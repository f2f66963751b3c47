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

// ErrNoAgent is of a session that opens no stream.
var ErrNoAgent = errors.New("no agent serves this address now")

const (
	openTime   = 10 * time.Second // to open a stream
	answerTime = 20 * time.Second // for an agent's answer
	// originIdle is how long an unused connection to an origin is kept. Common
	// origins close theirs after 5 s, and a request that meets the closing
	// cannot always be sent again.
	originIdle = 4 * time.Second
	// onceIdle is the same for a request that cannot be sent again: some origins close
	// theirs after 2 s, and what is on its way meanwhile meets the closing. A new
	// connection costs the visitor no round trip.
	onceIdle = time.Second
	// makeRoom is how long a new connection waits for an answer until unused ones are
	// closed for it.
	makeRoom = 300 * time.Millisecond
	// makeRoomFor is how long that is done for one of them. What waits longer is most
	// often told something later on, as by long polling, and has a connection.
	makeRoomFor = 10 * time.Second
	// maxIdle is how many of them a backend keeps. A crowd that is larger has
	// most of its requests wait for a new one.
	maxIdle = 1024
)

// ContinueWait is how long a visitor's body waits for an origin that was asked
// whether it wants it (RFC 9110, section 10.1.1).
const ContinueWait = time.Second

// Visit is what the agent is told of a visitor with each stream.
type Visit struct {
	Visitor, Edge netip.AddrPort
	Authority     string
	Client        string // that visits a private tunnel
}

// Config says where an Origin is, and how it is reached.
type Config struct {
	Session  link.Session
	Endpoint uint32 // its tunnel's number within the session
	Path     string // of a tunnel with paths: which of its origins; empty: its own
	// HeadTime is how long the head of an answer by HTTP/2 may take.
	HeadTime time.Duration
	// Asks finds in the context of a request by HTTP/2 for whom a stream is opened,
	// and whether there is no other origin to turn to.
	Asks func(context.Context) (v Visit, only bool)
}

// Origin is a local service behind an agent's session, and what is kept of the way
// to it between requests.
type Origin struct {
	cfg  Config
	idle idleStreams     // for HTTP/1.1, which the agent may look into
	h2   *http.Transport // for gRPC, and for origins that are to be spoken to so
}

// New returns an origin to which nothing is open yet.
func New(cfg Config) *Origin {
	o := &Origin{cfg: cfg}
	o.h2 = o.transport()
	return o
}

// Close closes the streams that no request uses.
func (o *Origin) Close() {
	o.idle.close()
	o.h2.CloseIdleConnections()
}

// Open opens a stream to the origin; the preface goes out with the first write.
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

// Want is what a request by HTTP/1.1 asks of its stream.
type Want struct {
	Visit Visit
	// Conn is the visitor's connection. Somebody else may have its address and port as
	// soon as it has ended.
	Conn any
	// Apart says that it is to carry this visitor's requests alone.
	Apart bool
	// SignsIn says that the origin may take what comes by it from now on for the same
	// user's. It is this visitor's alone from here on, who gets it again.
	SignsIn bool
	// Answers says that it is a step of a sign-in that answers what the origin has asked
	// by the stream.
	Answers bool
	// Once says that the request cannot be sent again where the origin closes the stream
	// just then.
	Once bool
	// New says that it is to be one that was not used before.
	New bool
}

// owner is whose a stream is; the zero value: anybody's.
type owner struct {
	visitor netip.AddrPort // a load balancer has those of several on one connection
	conn    any
}

func (w Want) owner() owner { return owner{w.Visit.Visitor, w.Conn} }

// Stream returns a stream for a request by HTTP/1.1: one that is idle, or a new one.
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

// Signs reports whether a stream is kept by which a visitor has signed in, or is about to.
func (o *Origin) Signs(v Visit, conn any) bool { return o.idle.signs(owner{v.Visitor, conn}) }

// Keep keeps a stream whose answer was read to its end, for another request.
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

// transport returns the pool of streams for HTTP/2 down to the origin, which gRPC
// needs. For that the agent is given a raw stream.
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
			// There is another to turn to: the request's body must not go to an
			// origin that is down.
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
