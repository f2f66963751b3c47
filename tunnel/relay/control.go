package relay

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"time"

	"adit/internal/goodput"
	"adit/tunnel/relay/metrics"
	"adit/tunnel/relay/sink"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/wire"
)

const (
	pingTime      = 15 * time.Second
	maxErrorsKept = 100
	accessTurn    = 50 * time.Millisecond
	maxAhead      = time.Hour // by how much an agent's clock may be ahead of ours
)

var claimKey = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// controlPlane is shared by all sessions: a relay may have many thousands, and most of
// them ask for little. A request belongs to the session in its context; see inContext.
var controlPlane = routes()

type sessionKey struct{}

// inContext returns a context for the requests of the session.
func (s *session) inContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, s)
}

func routes() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, allowed func(*session) bool, most int64, f func(*session, http.ResponseWriter, *http.Request) error) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s := r.Context().Value(sessionKey{}).(*session)
			if !s.enter() {
				return // nobody is left to read the answer
			}
			defer s.requests.Done()
			r.Body = http.MaxBytesReader(w, r.Body, most)
			err := error(&wire.Problem{Code: wire.CodeUnauthorized, Message: "the first request of a session is its hello"})
			if allowed(s) {
				err = f(s, w, r)
			}
			if err != nil {
				s.refuse(w, err)
			}
		})
	}
	anybody := func(*session) bool { return true }
	handle("POST "+wire.PathHello, anybody, maxControlBody, (*session).serveHello)
	handle("PUT "+wire.PathClaims+"{key}", (*session).isKnown, maxControlBody, (*session).serveClaim)
	handle("DELETE "+wire.PathClaims+"{key}", (*session).isKnown, maxControlBody, (*session).serveRelease)
	handle("GET "+wire.PathEvents, (*session).isKnown, maxControlBody, (*session).serveEvents)
	handle("POST "+wire.PathErrors, (*session).isKnown, maxControlBody, (*session).serveErrors)
	handle("GET "+wire.PathSpeed, (*session).mayMeasure, maxControlBody, (*session).serveSpeed)
	handle("POST "+wire.PathSpeed, (*session).mayMeasure, goodput.Most, (*session).serveSpeedUp)
	handle("GET "+wire.PathVisit+"{client}/{name}", (*session).isKnown, maxControlBody, (*session).serveVisit)
	handle("POST "+wire.PathVisit+"{client}/{name}", (*session).isKnown, maxControlBody, (*session).serveVisit)
	handle("GET "+wire.PathInvitations, (*session).isKnown, maxControlBody, (*session).serveInvitations)
	handle("GET "+wire.PathPolicy+"{key}", (*session).isKnown, maxControlBody, (*session).servePolicy)
	handle("PUT "+wire.PathPolicy+"{key}", (*session).isKnown, maxControlBody, (*session).serveSetPolicy)
	return mux
}

var problemStatus = map[string]int{
	wire.CodeUnauthorized: http.StatusUnauthorized,
	wire.CodeProtocol:     http.StatusBadRequest,
	wire.CodeInvalid:      http.StatusBadRequest,
	wire.CodeTaken:        http.StatusConflict,
	wire.CodeForbidden:    http.StatusForbidden,
	wire.CodeLimit:        http.StatusTooManyRequests,
	wire.CodeUnavailable:  http.StatusServiceUnavailable,
	wire.CodeChanged:      http.StatusPreconditionFailed,
	wire.CodeHere:         http.StatusConflict,
}

// refuse answers a request with an error.
func (s *session) refuse(w http.ResponseWriter, err error) {
	var p *wire.Problem
	if !errors.As(err, &p) {
		s.relay.log.Warn("control plane", "client", s.client.Name, "error", err)
		p = &wire.Problem{Code: wire.CodeUnavailable, Message: "something went wrong at the relay; ask its operator, who can find the cause in its log"}
		if bucket.IsAway(err) {
			p.Message = "the relay's store did not answer in time; try again in a moment"
		}
		if bucket.IsFull(err) || bucket.IsAway(err) && s.relay.store.Condition() == store.Full {
			p.Message = "the relay's store is full; ask its operator to free some space"
		}
		if errors.Is(err, bucket.ErrLost) {
			p.Message = "this node of the relay has lost its store, and cannot change anything until its operator restores a backup"
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(problemStatus[p.Code])
	json.NewEncoder(w).Encode(p)
}

func readJSON(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	// Unknown fields are allowed, since a newer agent may send more.
	if err := dec.Decode(v); err != nil {
		return &wire.Problem{Code: wire.CodeInvalid, Message: "the request's body does not parse"}
	}
	if _, err := dec.Token(); err != io.EOF {
		return &wire.Problem{Code: wire.CodeInvalid, Message: "something follows the request's body"}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

func (s *session) serveHello(w http.ResponseWriter, r *http.Request) error {
	var h wire.Hello
	if err := readJSON(r, &h); err != nil {
		return err
	}
	s.mu.Lock()
	tried := s.tried
	s.tried = true
	s.mu.Unlock()
	if tried {
		return &wire.Problem{Code: wire.CodeUnauthorized, Message: "a session has one hello"}
	}
	err := s.authenticate(h)
	if err != nil {
		var p *wire.Problem
		if errors.As(err, &p) {
			s.relay.counts.Hello(p.Code)
		}
		// An agent gets one attempt. The session ends once the agent has had time to read
		// why.
		s.relay.task(func() {
			wait := time.NewTimer(time.Second)
			defer wait.Stop()
			select {
			case <-wait.C:
			case <-s.link.Done():
			}
			s.link.Close("the hello was refused")
		})
		return err
	}
	s.relay.counts.Hello(metrics.Accepted)
	welcome := wire.Welcome{
		SessionID: s.id, ClientID: s.client.ID, ClientName: s.client.Name,
		Domain: s.relay.cfg.Domain, Node: s.relay.node, Version: s.relay.opts.Version, NodeID: s.relay.id,
		Features: []string{wire.FeatureHeaders, wire.FeaturePaths, wire.FeatureWildcards, wire.FeatureSpeed, wire.FeaturePrivate, wire.FeaturePrivateUDP, wire.FeatureInvitations, wire.FeaturePolicies, wire.FeaturePolicyHolds},
	}
	if m := s.relay.members; m != nil {
		welcome.Nodes = m.ForAgent()
		welcome.Addresses = addresses(welcome.Nodes)
	}
	return writeJSON(w, welcome)
}

func (s *session) authenticate(h wire.Hello) error {
	switch {
	case h.Protocol < wire.Protocol:
		return &wire.Problem{Code: wire.CodeProtocol, Message: "the relay speaks a newer version of the protocol; update adit"}
	case h.Protocol > wire.Protocol:
		return &wire.Problem{Code: wire.CodeProtocol, Message: "the relay speaks an older version of the protocol; ask its operator to update it"}
	}
	for _, f := range []struct {
		name, value string
		limit       int
	}{{"instance", h.Instance, 64}, {"client_id", h.ClientID, 128}, {"version", h.Version, 64}, {"os", h.OS, 32}, {"arch", h.Arch, 32}, {"hostname", h.Hostname, 255}, {"beside", h.Beside, 64}} {
		if len(f.value) > f.limit || strings.ContainsFunc(f.value, func(c rune) bool { return c < ' ' || c == 0x7f }) {
			return &wire.Problem{Code: wire.CodeInvalid, Message: f.name + " is too long or has control characters; change it", Field: f.name}
		}
	}
	if h.Instance == "" {
		return &wire.Problem{Code: wire.CodeInvalid, Message: "instance is missing", Field: "instance"}
	}
	client, ok := s.relay.store.Clients.Authenticate(h.Secret, time.Now())
	if m := s.relay.members; !ok && m != nil && !m.Sure() {
		// An agent does not ask again after a refusal, and it may belong to a client that
		// another node added a moment ago.
		return &wire.Problem{Code: wire.CodeUnavailable, Message: "this node of the relay is cut off from its store, and cannot tell whether the auth token is good"}
	}
	if !ok {
		return &wire.Problem{Code: wire.CodeUnauthorized, Message: "the relay does not know this auth token, or it was revoked"}
	}
	if client.Expired(time.Now()) {
		return &wire.Problem{Code: wire.CodeUnauthorized, Message: expiredReason(client), RetryAfter: expiredRetry}
	}
	if h.ClientID != "" && h.ClientID != client.ID && !strings.EqualFold(h.ClientID, client.Name) {
		return &wire.Problem{Code: wire.CodeUnauthorized, Message: "the auth token belongs to another client than the client id says", Field: "client_id"}
	}
	if h.Beside != "" && h.Beside == s.relay.id {
		return &wire.Problem{Code: wire.CodeHere, Message: "the agent has a session with this node already"}
	}
	s.secret, h.Secret = sha256.Sum256(h.Secret), nil
	s.mu.Lock()
	s.hello, s.client = h, client
	s.mu.Unlock()
	s.agent.ClientID, s.agent.Instance, s.agent.Account = client.ID, h.Instance, s.relay.accounts.Of(client.ID)
	if h.Trial {
		s.relay.try(s)
	} else {
		if p := s.relay.join(s); p != nil {
			return p
		}
		s.mu.Lock()
		s.known = true
		s.mu.Unlock()
		s.named()
	}
	// A revocation that came in the meantime did not find the session.
	if now, ok := s.relay.store.Clients.Get(client.Name); !ok || now.ID != client.ID || !now.Takes(s.secret, time.Now()) {
		s.relay.task(func() { s.link.Close("the client was revoked") })
		return &wire.Problem{Code: wire.CodeUnauthorized, Message: "the auth token was revoked"}
	}
	return nil
}

func (s *session) serveClaim(w http.ResponseWriter, r *http.Request) error {
	key := r.PathValue("key")
	if !claimKey.MatchString(key) {
		return &wire.Problem{Code: wire.CodeInvalid, Message: "the claim's key has 1 to 64 letters, digits, dots, hyphens or underscores"}
	}
	var c wire.Claim
	if err := readJSON(r, &c); err != nil {
		return err
	}
	var grant wire.Grant
	err := s.alone(func() (err error) {
		grant, err = s.claim(r.Context(), key, c)
		return err
	})
	if err != nil {
		return err
	}
	return writeJSON(w, grant)
}

// alone calls f while nothing else changes the session's claims, not even the relay. f
// must not write an answer to the agent, which may not read it.
func (s *session) alone(f func() error) error {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	return f()
}

func (s *session) serveRelease(w http.ResponseWriter, r *http.Request) error {
	err := s.alone(func() error {
		name := deleted
		switch query := r.URL.Query(); {
		case query.Get("keep") == "1":
			name = kept
		case query.Get("move") == "1":
			name = given
		}
		return s.release(r.Context(), r.PathValue("key"), name)
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// visited tells the agent about a visitor of its tunnels, if it wants to know. The event
// may be dropped.
func (s *session) visited(e wire.Access) {
	if s.unobserved.Load() {
		return
	}
	event := e // keeps e itself off the heap if nobody wants it
	select {
	case s.accessEvents() <- &wire.Event{Type: wire.EventAccess, Key: event.Key, Access: &event}:
	default:
	}
}

// accessEvents returns the queue of access events. It is created only for agents that
// want them. Most do not, and the queue is larger than everything else that an idle
// session needs here.
func (s *session) accessEvents() chan *wire.Event {
	s.observing.Do(func() { s.access = make(chan *wire.Event, accessPerTurn) })
	return s.access
}

// serveEvents writes events until the session ends. Events that the agent must know are
// written immediately. Access events are written in batches, since a busy tunnel has
// many.
func (s *session) serveEvents(w http.ResponseWriter, r *http.Request) error {
	s.unobserved.Store(r.URL.Query().Get(wire.ParamAccess) == wire.AccessNone)
	var access <-chan *wire.Event
	if !s.unobserved.Load() {
		access = s.accessEvents()
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	enc, flush := json.NewEncoder(w), http.NewResponseController(w).Flush
	ping := time.NewTicker(pingTime)
	defer ping.Stop()
	turn := time.NewTimer(accessTurn) // set only after access events, so that an idle session wakes nobody
	defer turn.Stop()
	next := &wire.Event{Type: wire.EventPing}
	for {
		if enc.Encode(next) != nil {
			return nil
		}
		if next.Type == wire.EventAccess && s.encodeWaiting(enc) != nil || flush() != nil {
			return nil
		}
		if next.Type == wire.EventAccess {
			turn.Reset(accessTurn)
			select { // what the agent must know does not wait for the next turn
			case <-turn.C:
			case next = <-s.control:
				continue
			case <-r.Context().Done():
				return nil
			}
		}
		select {
		case next = <-s.control:
			continue
		default:
		}
		select {
		case next = <-s.control:
		case next = <-access:
		case <-ping.C:
			next = &wire.Event{Type: wire.EventPing}
		case <-r.Context().Done():
			return nil
		}
	}
}

// encodeWaiting writes the access events that are in the queue. It does not wait for
// more: another stream of the same agent may have taken them.
func (s *session) encodeWaiting(enc *json.Encoder) error {
	waiting := s.accessEvents()
	for range len(waiting) {
		select {
		case e := <-waiting:
			if err := enc.Encode(e); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// reportedAt returns the time at which an agent says that something went wrong, or now if
// its clock cannot be right. A time in the future would remain the newest for good, and
// JSON has no time after the year 9999.
func reportedAt(at, now time.Time) time.Time {
	if at.Before(time.Unix(0, 0)) || at.After(now.Add(maxAhead)) {
		at = now
	}
	return at.UTC()
}

func (s *session) serveErrors(w http.ResponseWriter, r *http.Request) error {
	var list []wire.AgentError
	if err := readJSON(r, &list); err != nil {
		return err
	}
	for i := range list {
		list[i].Time = reportedAt(list[i].Time, time.Now())
		list[i].Message = strings.ToValidUTF8(list[i].Message[:min(len(list[i].Message), 1024)], "?")
		list[i].Key = list[i].Key[:min(len(list[i].Key), 64)]
	}
	urls := make(map[string]string)
	s.mu.Lock()
	for _, e := range list {
		if t := s.tunnels[e.Key]; t != nil {
			urls[e.Key] = t.url
		}
	}
	s.errors = append(s.errors, list...)
	if extra := len(s.errors) - maxErrorsKept; extra > 0 {
		s.errors = append([]wire.AgentError(nil), s.errors[extra:]...)
	}
	s.mu.Unlock()
	s.relay.notes.Report(s.client.ID, list)
	for _, e := range list {
		s.relay.alerts.Reported(sink.Client{
			Time: e.Time, State: sink.Faulty, Client: s.client.Name, ClientID: s.client.ID, PublicURL: urls[e.Key], Message: e.Message,
		})
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
