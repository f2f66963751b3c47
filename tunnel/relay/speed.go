package relay

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"adit/internal/goodput"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// How long one direction of a measurement may take if no data flows: for reading, and
// then for answering.
const (
	speedRead  = 2 * goodput.Time
	speedWrite = speedRead + goodput.Time
)

// try records that an authenticated session is only for measuring speed.
func (r *Relay) try(s *session) {
	s.mu.Lock()
	s.trial = true
	s.mu.Unlock()
	r.trials.mu.Lock()
	defer r.trials.mu.Unlock()
	if r.trials.open == nil {
		r.trials.open = make(map[*session]struct{})
	}
	r.trials.open[s] = struct{}{}
}

// trials holds the sessions that only measure speed.
type trials struct {
	mu   sync.Mutex
	open map[*session]struct{}
}

func (t *trials) remove(s *session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, s)
}

// endTrials ends the measurements that a client may not make any more.
func (r *Relay) endTrials(c store.Client) {
	now := time.Now()
	var over []*session
	r.trials.mu.Lock()
	for s := range r.trials.open {
		if s.client.Name == c.Name && (s.client.ID != c.ID || !c.Active() || c.Expired(now) || !c.Takes(s.secret, now)) {
			over = append(over, s)
		}
	}
	r.trials.mu.Unlock()
	for _, s := range over {
		r.task(func() { s.link.Close("the client was revoked") })
	}
}

// mayMeasure reports whether the session belongs to a client.
func (s *session) mayMeasure() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known || s.trial
}

// serveSpeed sends bytes under the same conditions as visitors' bytes: within the
// client's bandwidth, and counted as its traffic.
func (s *session) serveSpeed(w http.ResponseWriter, r *http.Request) error {
	if err := s.measured(w, r); err != nil {
		return err
	}
	a := s.agent.Account
	_, _ = io.Copy(w, shaped{r.Context(), goodput.Source(), shape.Buckets{&a.In}, func(n int) { a.Count(n, 0) }}) // the agent reports what arrived
	return nil
}

// serveSpeedUp receives bytes under the same conditions as bytes to visitors.
func (s *session) serveSpeedUp(w http.ResponseWriter, r *http.Request) error {
	if err := s.measured(w, r); err != nil {
		return err
	}
	a := s.agent.Account
	rate, err := goodput.Receive(shaped{r.Context(), r.Body, shape.Buckets{&a.Out}, func(n int) { a.Count(0, n) }})
	if err != nil {
		return &wire.Problem{Code: wire.CodeInvalid, Message: "the bytes to measure the speed by did not come"}
	}
	return writeJSON(w, wire.Speed{BytesPerSecond: rate})
}

// measured begins a measurement.
func (s *session) measured(w http.ResponseWriter, r *http.Request) error {
	if s.agent.Account.Stopped() {
		return &wire.Problem{Code: wire.CodeForbidden, Message: "the client has used up its traffic for this month"}
	}
	w.Header().Set("Connection", "close") // its deadlines go with the stream
	now, control := time.Now(), http.NewResponseController(w)
	if err := control.SetReadDeadline(now.Add(speedRead)); err != nil {
		return err
	}
	return control.SetWriteDeadline(now.Add(speedWrite))
}

// shaped reads within a bandwidth.
type shaped struct {
	ctx   context.Context
	from  io.Reader
	bound shape.Buckets
	count func(int)
}

func (s shaped) Read(b []byte) (int, error) {
	n, err := s.bound.Read(s.ctx, s.from, b)
	s.count(n)
	return n, err
}
