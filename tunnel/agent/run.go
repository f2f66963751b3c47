package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/feed"
	"adit/tunnel/agent/forward"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/agent/session"
	"adit/tunnel/agent/state"
	"adit/tunnel/agent/visits"
	"adit/tunnel/link"
)

// New reads the state folder and owns it until Run returns or Close is called. It starts nothing.
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
		Origins: a.origins, Inspector: a.inspector, Logger: a.log, Activity: a.activity, Complain: a.reports.Complain,
	})
	a.dialer = &session.Dialer{
		Dial: cfg.Dial, Detour: cfg.Transport == link.Auto, Streams: cfg.Visitors, Memory: cfg.Unread,
		Version: cfg.Version, Logger: a.log,
	}
	a.visits = visits.New(a.log, dialer{a})
	if err := a.restore(); err != nil {
		_ = folder.Close()
		return nil, err
	}
	return a, nil
}

// restore loads the state files.
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
	given := saved.Tunnels
	var elsewhere bool
	if a.login, elsewhere, err = restored(saved.Auth, a.cfg.AuthToken, a.cfg.ClientID, a.started); err != nil {
		a.standing.lastError = fmt.Sprintf("the configured token cannot be used: %v; configure a new one", err)
		a.log.Error("token is of no use", "error", err)
	}
	if elsewhere {
		given = given.Without()
	}
	a.dialer.Instance = a.login.auth.Instance
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

// Close releases the state folder if Run was not called.
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

// Run keeps the session and the tunnels until ctx ends.
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
