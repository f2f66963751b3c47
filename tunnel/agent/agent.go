package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/agent/control"
	"adit/tunnel/agent/feed"
	"adit/tunnel/agent/forward"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/session"
	"adit/tunnel/agent/state"
	"adit/tunnel/agent/visits"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// lookAgain is how long an origin that is asked and does not answer is taken to be
// where its name led, until the name is looked up again.
const lookAgain = 15 * time.Second

// relayWait is how long a control-plane request waits for the relay.
const relayWait = 15 * time.Second

// Agent keeps the session and the tunnels. Its methods may be called from
// several goroutines; those that change something run one at a time, and while
// one runs another gets refusal.CodeControlBusy at once.
type Agent struct {
	cfg       Config
	log       *slog.Logger
	state     *state.Folder
	started   time.Time
	feed      *feed.Feed
	inspector *inspect.Inspector
	origins   *origin.Dialer
	forward   *forward.Forwarder
	dialer    *session.Dialer

	speeding sync.Mutex // held while the speed is measured
	control  turn       // held by the one control-plane request that runs, or by own work
	saving   sync.Mutex // held while a state file is written
	// publishing is held while changes are told, so that they are told in order.
	publishing sync.Mutex
	wake       chan struct{} // tells the keeper to look again; room for one
	wakeSecond chan struct{} // tells keepSecond to look again; room for one
	activity   chan struct{} // tells that visitors came or went; room for one
	unheld     chan struct{} // tells keepHeld to look again; room for one
	reports    *control.Reports
	visits     *visits.Visits
	unsaved    atomic.Bool // the last try to write tunnels.json did not succeed

	mu         sync.Mutex
	auth       state.Auth
	token      wire.Token  // of auth.Token
	tokenSaved bool        // false while auth.Token came from the environment and is not yet accepted
	clientID   string      // as the relay calls the client
	epoch      int         // rises with each change of the token
	cur        *live       // the session in use; nil without one
	second     *live       // a session with another node of the relay; nil without one
	nodes      []wire.Node // the relay's, as last told
	unserved   []*live     // sessions that Run has not begun to serve
	served     []*live     // sessions that Run serves, those that were left too
	rejected   bool        // the relay refused the token
	pardon     pardon      // of that refusal
	reconnect  bool        // a person asked for a new session
	known      bool        // there was a session since the token or a pause changed
	attempts   int         // ended attempts at a session, whatever came of them
	lastError  string
	notices    []string // what went wrong with the state files
	moves      moves
	tunnels    map[string]*tunnel
	granted    map[string]state.Grant // of declared tunnels that are not here now
	releases   map[string]bool        // claims to give back
	making     string                 // id of the tunnel that is being created
	closed     bool
	lastState  string        // as last published
	changed    chan struct{} // closed by the next change; nil while nobody waits
}

// New reads the state folder and makes it the agent's own until Run returns or
// Close is called. It starts nothing.
func New(cfg Config) (*Agent, error) {
	if cfg.StateDir == "" {
		return nil, errors.New("state_dir: is missing")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Dial == nil {
		cfg.Dial = link.Dial
	}
	if cfg.OriginTimeout == 0 {
		cfg.OriginTimeout = 5 * time.Second
	}
	folder, err := state.Open(cfg.StateDir)
	if err != nil {
		return nil, err
	}
	started := time.Now()
	a := &Agent{
		cfg: cfg, log: cfg.Logger, state: folder, started: started,
		feed:       feed.New(started),
		inspector:  inspect.New(cfg.Inspect),
		origins:    &origin.Dialer{Guard: origin.Guard{Refuse: cfg.Refuse}, Timeout: cfg.OriginTimeout, LookAgain: lookAgain},
		wake:       make(chan struct{}, 1),
		wakeSecond: make(chan struct{}, 1),
		activity:   make(chan struct{}, 1),
		unheld:     make(chan struct{}, 1),
		reports:    control.NewReports(cfg.Logger),
		tunnels:    make(map[string]*tunnel),
		releases:   make(map[string]bool),
	}
	a.inspector.Follow(func(e inspect.Told) { a.feed.Publish(EventRequest, e) })
	a.forward = forward.New(forward.Config{
		Origins: a.origins, Inspector: a.inspector, Logger: a.log, Active: a.active, Complain: a.reports.Complain,
	})
	a.dialer = &session.Dialer{
		Dial: cfg.Dial, Detour: cfg.Transport == link.Auto, Streams: cfg.Visitors, Memory: cfg.Unread,
		Version: cfg.Version, Logger: a.log,
	}
	a.visits = visits.New(a.log, a.dialPrivate)
	if err := a.restore(); err != nil {
		_ = folder.Close()
		return nil, err
	}
	return a, nil
}

// restore takes the state files in.
func (a *Agent) restore() error {
	saved, err := a.state.Load()
	if err != nil {
		return err
	}
	a.notices = saved.Notices
	for _, n := range a.notices {
		a.log.Error("state file put aside", "error", n)
	}
	if saved.Mended > 0 {
		a.log.Warn("tunnels had no id of their own and have new ones", "file", "tunnels.json", "tunnels", saved.Mended)
		a.unsaved.Store(true) // the next start is to find the same ids
	}
	a.auth = saved.Auth
	a.dialer.Instance = a.auth.Instance
	a.tokenSaved = true
	if a.auth.Token == "" && a.cfg.AuthToken != "" {
		a.auth.Token = a.cfg.AuthToken
		a.auth.ClientID = a.cfg.ClientID
		a.auth.ConfiguredAt = a.started.UTC()
		a.tokenSaved = false
	}
	if a.auth.Token != "" {
		if a.token, err = wire.ParseToken(a.auth.Token); err != nil {
			a.lastError = fmt.Sprintf("the configured token is of no use: %v; configure one anew", err)
			a.log.Error("token is of no use", "error", err)
			a.auth.Token, a.tokenSaved = "", true
		}
	}
	if a.auth.AddressesOf != state.FingerprintOf(a.token) { // the token is for another relay, as one from the environment may be
		a.auth.Addresses, a.auth.AddressesOf = nil, ""
	}
	given := saved.Tunnels
	if relay := state.FingerprintOf(a.token); relay != "" && relay != a.auth.GivenBy {
		if a.auth.GivenBy != "" { // the token came from elsewhere, and another relay knows nothing of it
			given = given.Without()
		}
		a.auth.GivenBy = relay
	}
	a.granted = given.Granted
	if a.granted == nil {
		a.granted = make(map[string]state.Grant)
	}
	for _, key := range given.Releases {
		a.releases[key] = true
	}
	for _, st := range given.Tunnels {
		if st.Spec.Numbered() {
			st.Spec.Domain = "" // an earlier adit took it and made nothing of it
		}
		want, bad := st.Spec.Normalize(a.origins.Guard)
		t := newTunnel(st.ID, want, st.CreatedAt)
		t.stopped, t.grant = st.Stopped, st.Granted
		if bad != nil { // kept and shown, for a person to mend
			t.fault = bad.Message
		}
		a.tunnels[st.ID] = t
	}
	return nil
}

// Close gives the state folder back if Run was not called.
func (a *Agent) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	sessions := a.unserved
	a.unserved, a.cur, a.second = nil, nil, nil
	a.mu.Unlock()
	for _, l := range sessions {
		l.end("the agent ends")
	}
	return a.state.Close()
}

// Run keeps session and tunnels until ctx ends.
func (a *Agent) Run(ctx context.Context) error {
	defer func() { _ = a.Close() }() // the lock ends with the process at the latest
	use, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() { a.inspector.Run(use) })
	wg.Go(func() { a.publishActivity(use) })
	wg.Go(func() { a.keepSecond(use) })
	wg.Go(func() { a.forward.KeepLooking(use, a.running) })
	wg.Go(func() { a.keepHeld(ctx) })
	wg.Go(func() { a.visits.Run(ctx) })
	wg.Go(func() { a.keep(use) })
	<-ctx.Done()
	a.part(use)
	cancel()
	wg.Wait()
	return nil
}

// Status returns the agent as a whole.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.statusLocked()
}

func (a *Agent) statusLocked() Status {
	s := Status{
		Configured: a.auth.Token != "",
		State:      a.stateLocked(),
		Version:    a.cfg.Version,
		OS:         runtime.GOOS,
		Arch:       runtime.GOARCH,
		PID:        os.Getpid(),
		StartedAt:  monotime.Wall(a.started),
		RunBy:      a.cfg.RunBy,
		Bytes:      a.forward.Bytes(),
	}
	s.Connected = s.State == StateConnected
	if s.Configured {
		s.Relay = a.token.Relay
	}
	if a.cur != nil && a.cur.Alive() {
		stats := a.cur.Link.Stats()
		s.Relay = a.cur.Addr
		s.Transport = string(a.cur.Link.Transport())
		s.RTTMillis = float64(stats.RTT.Microseconds()) / 1000
		if s.Connected {
			since := monotime.Wall(a.cur.Since)
			s.ConnectedSince = &since
		}
	}
	s.LastError = a.errorLocked(s.State)
	for _, t := range a.tunnels {
		if a.tunnelStateLocked(t, s.State) == TunnelRunning {
			s.EndpointCount++
		}
	}
	return s
}

// errorLocked says what is wrong in the given state.
func (a *Agent) errorLocked(state string) string {
	switch {
	case state == StateConnected || state == StatePaused:
	case a.lastError != "":
		return a.lastError
	case state == StateReconnecting && a.cur != nil && a.cur.Draining():
		return "the relay is shutting down; looking for another session"
	case state == StateReconnecting:
		return "the relay has not answered within the last keep-alive interval; trying again"
	}
	if len(a.notices) > 0 {
		return a.notices[len(a.notices)-1]
	}
	return ""
}

func (a *Agent) stateLocked() string {
	switch {
	case a.auth.Token == "":
		return StateUnconfigured
	case a.auth.Paused:
		return StatePaused
	case a.cur != nil && a.cur.Alive():
		if a.cur.Fresh() && !a.cur.Draining() {
			return StateConnected
		}
		return StateReconnecting
	case a.rejected:
		return StateRejected
	case a.known:
		return StateReconnecting
	}
	return StateConnecting
}

// Endpoints returns the public faces of the tunnels that run.
func (a *Agent) Endpoints() []Endpoint {
	a.mu.Lock()
	defer a.mu.Unlock()
	state := a.stateLocked()
	out := []Endpoint{}
	for _, t := range a.sortedLocked() {
		if a.tunnelStateLocked(t, state) == TunnelRunning {
			out = append(out, t.endpoint(TunnelRunning))
		}
	}
	return out
}

// sortedLocked returns the tunnels, oldest first.
func (a *Agent) sortedLocked() []*tunnel {
	return slices.SortedFunc(maps.Values(a.tunnels), func(x, y *tunnel) int {
		return cmp.Or(x.created.Compare(y.created), cmp.Compare(x.id, y.id))
	})
}

// running returns what leads the visitors of the tunnels that are not stopped.
func (a *Agent) running() []*forward.Tunnel {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := make([]*forward.Tunnel, 0, len(a.tunnels))
	for _, t := range a.tunnels {
		if !t.stopped {
			list = append(list, t.forward)
		}
	}
	return list
}

// poke has the keeper look again.
func (a *Agent) poke() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// publish tells waiters and the feed what has changed since the last call. It
// must be called without a.mu.
func (a *Agent) publish() {
	type change struct {
		kind string
		data any
	}
	var changes []change
	a.publishing.Lock()
	defer a.publishing.Unlock()
	a.mu.Lock()
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
	state := a.stateLocked()
	status := a.statusLocked()
	key := fmt.Sprintf("%s %s %s %s %d %t", status.State, status.Relay, status.Transport, status.LastError, status.EndpointCount, status.Configured)
	if key != a.lastState {
		a.lastState = key
		changes = append(changes, change{EventStatus, status})
	}
	for _, t := range a.tunnels {
		now := t.snapshot(a.tunnelStateLocked(t, state))
		if t.published == nil {
			changes = append(changes, change{EventTunnel, TunnelEvent{Action: "created", Tunnel: now}})
		} else if !reflect.DeepEqual(t.published, &now) { // by pointers, so that nothing is copied
			changes = append(changes, change{EventTunnel, TunnelEvent{Action: "changed", Tunnel: now}})
		}
		was := t.published != nil && t.published.State == TunnelRunning
		switch is := now.State == TunnelRunning; {
		case is && !was:
			changes = append(changes, change{EventEndpoint, EndpointEvent{Action: "up", Endpoint: t.endpoint(TunnelRunning)}})
		case was && !is:
			changes = append(changes, change{EventEndpoint, EndpointEvent{Action: "down", Endpoint: t.endpoint(now.State)}})
		}
		t.published = &now
	}
	a.mu.Unlock()
	for _, c := range changes {
		a.feed.Publish(c.kind, c.data)
	}
}

// waitChangeLocked returns a channel that is closed by the next change.
func (a *Agent) waitChangeLocked() <-chan struct{} {
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return a.changed
}

// publishActivity tells the feed how much passes, once a second while something
// does. Otherwise it sleeps.
func (a *Agent) publishActivity(ctx context.Context) {
	look := time.NewTimer(time.Hour)
	defer look.Stop()
	look.Stop()
	last := map[string]Endpoint{}
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.activity:
		case <-look.C:
		}
		moved, open := false, false
		now := map[string]Endpoint{}
		for _, e := range a.Endpoints() {
			now[e.TunnelID] = e
			open = open || e.Connections.Open > 0
			if before, ok := last[e.TunnelID]; ok && before != e || !ok && (e.Connections.Total > 0 || e.Error != "") {
				moved = true
				a.feed.Publish(EventEndpoint, EndpointEvent{Action: "changed", Endpoint: e})
			}
		}
		last = now
		if moved {
			a.feed.Publish(EventStatus, a.Status())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		switch {
		case moved:
			look.Reset(0)
		case open: // bytes may still pass over connections that stay open
			look.Reset(4 * time.Second)
		default:
			look.Stop()
		}
	}
}

// Subscribe begins a feed after the event with the id after; nil begins with
// what comes next.
func (a *Agent) Subscribe(after *uint64) *feed.Subscription { return a.feed.Subscribe(after) }

// Publish puts an event of another part of the daemon (a log line) into the feed.
func (a *Agent) Publish(kind string, data any) { a.feed.Publish(kind, data) }

func (a *Agent) active() {
	select {
	case a.activity <- struct{}{}:
	default:
	}
}
