package relay

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/nodes"
	"adit/tunnel/relay/roster"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

const (
	helloTime = 10 * time.Second
	// trialTime is how long a session for measuring speed may last: enough for a
	// handshake and both directions of a path that carries hardly anything.
	trialTime = 20 * time.Second
	// maxControlStreams bounds the streams that an agent may have open to us.
	maxControlStreams = 64
	// strangerStreams is the same before its hello, which needs one: each costs memory,
	// and there may be many strangers.
	strangerStreams = 4
	maxControlBody  = 64 << 10
	eventQueue      = 256
	accessPerTurn   = 1024             // access events sent to an agent in 50 ms; more are dropped
	replacedTime    = 30 * time.Second // for a replaced session's streams
	awayTime        = 15 * time.Minute // before another agent of the client may take a claim
	ephemeralTime   = 5 * time.Minute  // an ephemeral claim outlives its session
	sweepTime       = 30 * time.Second
)

// session is one agent's session.
type session struct {
	relay      *Relay
	link       link.Session
	agent      routing.Agent
	id         string
	since      time.Time
	control    chan *wire.Event // events that the agent must know
	observing  sync.Once
	access     chan *wire.Event // events that may be dropped; see accessEvents
	unobserved atomic.Bool      // the agent wants no access events
	streams    atomic.Int32
	asked      atomic.Int64 // when the agent was asked to move to another node, by monotime.Now; 0: never
	gone       atomic.Bool  // replaced or revoked: it no longer has its claims
	secret     [32]byte     // SHA-256 of the secret in the auth token that it began with
	named      func()       // gives up its place among strangers; may be called more than once

	claiming sync.Mutex     // one claim at a time
	requests sync.WaitGroup // control plane requests being served; see enter

	mu      sync.Mutex
	hello   wire.Hello // Secret is removed
	client  store.Client
	known   bool // the Hello was accepted
	trial   bool // the Hello was accepted, but the session is only for measuring speed
	tried   bool
	tunnels map[string]*tunnel // by key; nil once the session has ended
	next    uint32
	errors  []wire.AgentError
}

// tunnel is a running tunnel of a session.
type tunnel struct {
	face     routing.Face
	backend  *routing.Backend
	endpoint *routing.Endpoint
	url      string

	ephemeral bool
}

// newID returns a new id for a session.
func newID() string {
	var b [9]byte
	rand.Read(b[:])
	return "s_" + hex.EncodeToString(b[:])
}

// controlProtocols spares each session what net/http sets up for HTTP/2.
var controlProtocols = func() (p http.Protocols) {
	p.SetHTTP1(true)
	return p
}()

// serve runs a session until it or life ends.
func (r *Relay) serve(life context.Context, ls link.Session) {
	named, ok := r.strangers.enter(ls.RemoteAddr(), func() {
		r.task(func() {
			ls.Close("too many sessions are waiting to identify themselves, and this one did not do so in time; try again")
		})
	})
	if !ok {
		ls.Close("too many sessions from this address are waiting to identify themselves; try again later")
		return
	}
	defer named()
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	s := &session{
		relay: r, link: ls, id: newID(), since: time.Now(), tunnels: make(map[string]*tunnel),
		control: make(chan *wire.Event, eventQueue), named: named,
	}
	s.agent.Session = ls
	server := &http.Server{
		Handler: controlPlane, ReadHeaderTimeout: helloTime, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return s.inContext(ctx) },
		Protocols:   &controlProtocols,
		ErrorLog:    slog.NewLogLogger(r.log.Handler(), slog.LevelDebug),
	}
	var group sync.WaitGroup
	group.Go(func() { _ = server.Serve(&streamListener{ctx: ctx, session: s}) })
	group.Go(func() { _ = s.agent.Flows.Serve(ctx, s.agent.Session) })
	late := time.AfterFunc(helloTime, func() {
		switch {
		case s.mayMeasure() && !s.isKnown():
			time.AfterFunc(trialTime-helloTime, func() { ls.Close("a measurement of speed is over") })
		case !s.isKnown():
			ls.Close("no hello came in time")
		}
	})
	select {
	case <-ls.Done():
	case <-life.Done():
		ls.Close("the relay is shutting down")
	}
	late.Stop()
	cancel()
	server.Close()
	group.Wait()
	r.leave(s)
}

func (s *session) isKnown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

// tell queues an event for the agent. If the agent does not read its events, its session
// is ended.
func (s *session) tell(e wire.Event) {
	select {
	case s.control <- &e:
	default:
		s.relay.task(func() { s.link.Close("events are not read") })
	}
}

// join makes an authenticated session known, and lets it replace an older one of the same
// agent. The claims move over as the agent asks for them. The older session ends when its
// streams have ended, or after a while.
func (r *Relay) join(s *session) *wire.Problem {
	old, err := r.roster.Join(s.id, roster.Agent{Client: s.client.ID, Instance: s.hello.Instance}, s)
	switch {
	case errors.Is(err, roster.ErrClosed):
		return shuttingDown()
	case errors.Is(err, roster.ErrFull):
		return &wire.Problem{Code: wire.CodeLimit, Message: "the relay has too many agents connected; ask its operator to allow more"}
	case err != nil:
		return &wire.Problem{Code: wire.CodeLimit, Message: "the client has too many agents connected; end one, or ask the relay's operator for more"}
	}
	if r.mesh != nil {
		r.mesh.AgentUp(nodes.Agent{Session: s.id, ClientID: s.client.ID, Instance: s.hello.Instance, Beside: s.hello.Beside})
	}
	r.log.Info("agent connected", "client", s.client.Name, "instance", s.hello.Instance,
		"address", s.link.RemoteAddr().String(), "transport", string(s.link.Transport()), "version", s.hello.Version)
	r.notes.Saw(s.client.ID, s.sighting(true))
	switch {
	case old == nil:
	case old.Crowded:
		r.task(old.Session.replaced)
	default:
		r.task(func() { r.retire(old.Session, s) })
	}
	return nil
}

// retire ends a replaced session. If the agent's process was killed, there is no need to
// wait for its streams: once the new session has the tunnels, it serves the visitors.
func (r *Relay) retire(old, by *session) {
	dead := !old.answers()
	deadline := time.NewTimer(replacedTime)
	defer deadline.Stop()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for idle := 0; idle < 10; {
		select {
		case <-old.link.Done():
			return
		case <-by.link.Done():
			return // the new session did not last; the older one may continue
		case <-deadline.C:
			idle = 10
		case <-tick.C:
			switch {
			case !old.moved(by):
				idle = 0
			case dead:
				idle = 10
			case old.link.Stats().Streams <= int(old.streams.Load()):
				idle++
			default:
				idle = 0
			}
		}
	}
	old.replaced()
}

// replaced ends a session that another has replaced.
func (s *session) replaced() { s.link.Close("replaced by a newer session of the same agent") }

// moved reports whether all tunnels of s are now by's.
func (s *session) moved(by *session) bool {
	s.mu.Lock()
	keys := make([]string, 0, len(s.tunnels))
	for key := range s.tunnels {
		keys = append(keys, key)
	}
	s.mu.Unlock()
	by.mu.Lock()
	defer by.mu.Unlock()
	for _, key := range keys {
		if by.tunnels[key] == nil {
			return false
		}
	}
	return true
}

// enter reports whether a request may be served, which it may not once the session has
// ended. If it may, the caller calls s.requests.Done when the request is done.
func (s *session) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tunnels == nil {
		return false
	}
	s.requests.Add(1)
	return true
}

// leave forgets an ended session; its claims stay the client's. A request that is still
// being served could make the session known, or a tunnel run, after that. So leave waits
// for such requests, once visitors have been turned away.
func (r *Relay) leave(s *session) {
	s.mu.Lock()
	tunnels := s.tunnels
	s.tunnels = nil
	s.mu.Unlock()
	if r.mesh != nil {
		r.mesh.AgentDown(s.id)
	}
	for key, t := range tunnels {
		r.serving.remove(t.face.Target, s, key)
		r.edge.Lose(t.face, t.backend)
	}
	s.requests.Wait()
	r.doubts.drop(func(_ string, of served) bool { return of.session == s })
	if r.mesh != nil {
		r.mesh.AgentDown(s.id) // a hello may have announced it in the meantime
	}
	if !s.isKnown() {
		r.trials.remove(s)
		return
	}
	if r.roster.Leave(s.id) && !r.far.Has(s.client.ID) { // otherwise it is still seen there
		r.notes.Saw(s.client.ID, s.sighting(false))
	}
	r.log.Info("agent disconnected", "client", s.client.Name, "instance", s.hello.Instance, "reason", s.link.Err())
}

// gone reports whether a claim's holder has been away for so long that another may take
// what it holds.
func (r *Relay) gone(clientID string, h claims.Holder) bool {
	key := roster.Agent{Client: clientID, Instance: h.Instance}
	limit := awayTime
	if h.Ephemeral {
		limit = ephemeralTime
	}
	if r.members != nil && (r.far.Connected(key) || !r.members.Whole()) {
		return false
	}
	away, since := r.roster.Away(key)
	if since.IsZero() {
		since = r.started
	}
	return away && time.Since(since) > limit
}

// sweep gives back ephemeral claims whose agents have stayed away, and removes what is
// stored about clients that no longer exist.
func (r *Relay) sweep(ctx context.Context) {
	var clients forgetting
	tick := time.NewTicker(sweepTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, c := range r.store.Claims.All() {
			for _, h := range c.Holders {
				if h.Ephemeral {
					if err := r.store.Claims.ReleaseAway(ctx, c.Target, c.ClientID, h.Instance, h.Key, r.gone); err != nil && ctx.Err() == nil {
						r.log.Warn("give back an ephemeral claim", "target", c.Target, "error", err)
					}
				}
			}
		}
		r.reclaim(ctx, time.Now())
		for _, target := range r.doubts.targets() {
			r.undoDoubted(target)
		}
		clients.turn(ctx, r, time.Now())
		if err := r.store.Ended.Forget(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.log.Warn("forget whose sign-ins were ended", "error", err)
		}
		r.roster.Forget(time.Now().Add(-2 * awayTime))
	}
}

// streamListener passes an agent's streams to an http.Server.
type streamListener struct {
	ctx     context.Context
	session *session
}

func (l *streamListener) Accept() (net.Conn, error) {
	for {
		st, err := l.session.link.AcceptStream(l.ctx)
		if err != nil {
			return nil, net.ErrClosed
		}
		most := int32(maxControlStreams)
		if !l.session.isKnown() {
			most = strangerStreams
		}
		if l.session.streams.Add(1) > most {
			l.session.streams.Add(-1)
			st.Reset()
			continue
		}
		return &controlConn{Stream: st, session: l.session}, nil
	}
}

func (l *streamListener) Close() error   { return nil }
func (l *streamListener) Addr() net.Addr { return l.session.link.LocalAddr() }

type controlConn struct {
	link.Stream
	session *session
	once    sync.Once
}

func (c *controlConn) Close() error {
	c.once.Do(func() { c.session.streams.Add(-1) })
	return c.Stream.Close()
}

// sighting describes where a session's agent is, or was.
func (s *session) sighting(connected bool) store.Seen {
	return store.Seen{
		At: time.Now().UTC(), Connected: connected, Node: s.relay.node, Address: s.link.RemoteAddr().String(),
		Transport: string(s.link.Transport()), Version: s.hello.Version, OS: s.hello.OS, Arch: s.hello.Arch,
		Hostname: s.hello.Hostname, Instance: s.hello.Instance,
	}
}
