package agent

import (
	"cmp"
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/forward"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// live is one session after Hello, with all that belongs to it.
type live struct {
	agent   *Agent
	session link.Session
	ctl     *control.Client
	welcome wire.Welcome
	addr    string // the relay's, as dialled
	since   time.Time
	retired chan struct{} // closed when another session has taken over
	again   chan struct{} // tells claimAll to look for tunnels; room for one
	// epoch is that of the token it is in use under. The agent's mutex guards it.
	epoch int
	// owed are stopped tunnels whose endpoints the relay could not be told to
	// take down. The agent's mutex guards it.
	owed map[*tunnel]struct{}

	visitors *forward.Session

	mu      sync.Mutex
	gone    bool          // retired is closed
	grace   time.Duration // how long visitors have after that; 0: as long as they take
	drain   bool          // the relay asked to move on
	suspect bool          // a probe was not answered
	dropped bool          // another node says that this one is gone
	doubt   chan struct{} // asks for a probe; room for one
}

// connect makes a session at addr and says Hello.
func (a *Agent) connect(ctx context.Context, addr string, j joining) (*live, error) {
	a.mu.Lock()
	instance := a.auth.Instance
	a.mu.Unlock()
	session, err := a.cfg.Dial(ctx, link.DialConfig{
		Relay: addr, Fingerprint: j.token.Fingerprint, Transport: j.over,
		Detour: a.cfg.Transport == link.Auto && !j.trial, MaxStreams: a.cfg.Visitors, Memory: a.cfg.Unread, Logger: a.log,
	})
	if err != nil {
		return nil, err
	}
	ctl := control.New(session)
	hostname, _ := os.Hostname()
	welcome, err := ctl.Hello(ctx, wire.Hello{
		Protocol: wire.Protocol, Secret: j.token.Secret[:], ClientID: j.clientID, Instance: instance,
		Version: a.cfg.Version, OS: runtime.GOOS, Arch: runtime.GOARCH, Hostname: hostname, Beside: j.beside, Trial: j.trial,
	})
	if err != nil {
		ctl.Close()
		_ = session.Close("no welcome")
		// The session's end says more than the request that it broke.
		if ended := session.Err(); ended != nil && !control.Answered(err) && ctx.Err() == nil {
			var closed *link.CloseError
			if errors.As(ended, &closed) {
				err = ended
			}
		}
		return nil, err
	}
	return &live{
		agent: a, session: session, ctl: ctl, welcome: welcome, addr: addr, since: time.Now(),
		retired: make(chan struct{}), again: make(chan struct{}, 1), doubt: make(chan struct{}, 1), visitors: a.forward.Session(session),
	}, nil
}

// alive reports whether the session has not ended.
func (l *live) alive() bool {
	select {
	case <-l.session.Done():
		return false
	default:
		return true
	}
}

// fresh reports whether the relay was heard within the last keep-alive interval.
func (l *live) fresh() bool { return l.staleIn() > 0 }

// staleIn is how long the session stays fresh if nothing is heard.
func (l *live) staleIn() time.Duration {
	s := l.session.Stats()
	heard := s.LastReceived
	if heard.IsZero() {
		heard = l.since
	}
	interval := s.KeepAlive
	if interval <= 0 {
		interval = 15 * time.Second
	}
	// An answer may be on its way for as long as a round trip takes.
	return time.Until(heard.Add(interval + 2*s.RTT))
}

// retire leaves the session to the visitors it has, for grace at most (0: as
// long as they take).
func (l *live) retire(grace time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.gone {
		l.gone, l.grace = true, grace
		close(l.retired)
	}
}

// serve works for the session until it has ended. If ctx ends, it closes it.
func (l *live) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	// While the session is in use; retiring ends it.
	use, unuse := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.visitors.Serve(ctx) })
	wg.Go(func() { l.followEvents(use) })
	wg.Go(func() { l.claimAll(use) })
	wg.Go(func() { l.watch(use) })
	wg.Go(func() { l.proveItself(use) })
	wg.Go(func() { l.sendReports(use) })
	select {
	case <-ctx.Done():
		_ = l.session.Close("the agent ends")
	case <-l.session.Done():
	case <-l.retired:
		unuse()
		l.fade(ctx)
	}
	unuse()
	cancel()
	<-l.session.Done()
	wg.Wait()
	l.ctl.Close()
}

// fade closes a retired session when its visitors have gone.
func (l *live) fade(ctx context.Context) {
	l.ctl.Close()
	var end <-chan time.Time
	if l.grace > 0 {
		timer := time.NewTimer(l.grace)
		defer timer.Stop()
		end = timer.C
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	given := make(map[*tunnel]bool)
	for quiet := 0; quiet < 2; {
		l.handOver(ctx, given)
		select {
		case <-ctx.Done():
			_ = l.session.Close("the agent ends")
			return
		case <-l.session.Done():
			return
		case <-end:
			quiet = 2
		case <-tick.C:
			if quiet++; l.session.Stats().Streams > 0 {
				quiet = 0
			}
		}
	}
	_ = l.session.Close("another session has taken over")
}

// watch tells when the session goes stale and when it is heard again, and when
// its transport is another one.
func (l *live) watch(ctx context.Context) {
	var changed <-chan struct{}
	if s, ok := l.session.(interface{ TransportChanged() <-chan struct{} }); ok {
		changed = s.TransportChanged()
	}
	fresh := true
	for {
		wait := l.staleIn()
		if now := wait > 0; now != fresh {
			fresh = now
			if !fresh {
				l.agent.log.Warn("relay not heard within the keep-alive interval", "relay", l.addr)
			}
			l.agent.publish()
			l.agent.poke()
			l.agent.wantSecond()
		}
		if !fresh {
			wait = 250 * time.Millisecond
		}
		timer := time.NewTimer(wait + 10*time.Millisecond)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-l.session.Done():
			timer.Stop()
			return
		case <-changed:
			timer.Stop()
			l.agent.log.Info("session goes on another way", "relay", l.addr, "transport", string(l.session.Transport()))
			l.agent.publish()
			l.agent.poke()
		case <-timer.C:
		}
	}
}

// probe asks the relay for an answer now, and marks the session if none comes.
func (l *live) probe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if err := l.ctl.Ping(ctx); err != nil {
		l.mu.Lock()
		l.suspect = true
		l.mu.Unlock()
		l.agent.poke()
		l.agent.wantSecond()
	}
}

// draining reports whether the relay asked to move on: it serves those who are
// there, and nobody else.
func (l *live) draining() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drain
}

// leaving reports whether another session should take over from this one.
func (l *live) leaving() bool { return l.ailing() || l.worn() }

// ailing reports whether another node had better be tried, too.
func (l *live) ailing() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.drain || l.suspect || !l.fresh()
}

// worn reports whether the session is to be replaced for what has gone over it: nothing
// is wrong with its node. Nobody is told when it comes to that, which takes hours at
// the least, and from then on many times as long is left: who keeps sessions looks
// once an hour.
func (l *live) worn() bool { return l.session.Stats().Worn }

// followEvents does what the relay's events ask for.
func (l *live) followEvents(ctx context.Context) {
	for wait := time.Second; ; wait = min(2*wait, time.Minute) {
		begin := time.Now()
		err := l.ctl.Events(ctx, l.handle)
		if ctx.Err() != nil || !l.alive() {
			return
		}
		l.agent.log.Debug("event stream ended", "error", err)
		if time.Since(begin) > time.Minute {
			wait = time.Second
		}
		select {
		case <-ctx.Done():
			return
		case <-l.session.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (l *live) handle(e wire.Event) {
	a := l.agent
	switch e.Type {
	case wire.EventDrain:
		a.log.Info("relay asks to move on", "reason", e.Reason)
		l.mu.Lock()
		l.drain = true
		l.mu.Unlock()
		a.moved(l, e.Addresses)
		if len(e.Nodes) > 0 {
			a.told(l, e.Nodes)
		}
		a.poke()
		a.wantSecond()
	case wire.EventNodes:
		var addrs []string
		for _, n := range e.Nodes {
			addrs = append(addrs, n.Address)
		}
		a.moved(l, addrs)
		a.told(l, e.Nodes)
	case wire.EventMoved:
		if kept := a.moved(l, e.Addresses); kept != nil {
			a.log.Info("relay moved", "addresses", kept)
		}
	case wire.EventRevoked:
		if p := pardonAfter(e.RetryAfter); p.pace > 0 {
			a.refuse(l, "the relay refuses the token for now: "+cmp.Or(e.Reason, "no reason given")+"; ask its operator", p)
			return
		}
		a.refuse(l, "the relay revoked the token: "+cmp.Or(e.Reason, "no reason given")+"; ask its operator for a new one", pardon{})
	case wire.EventClaimLost:
		a.claimLost(l, e.Key, cmp.Or(e.Reason, "the relay took it away"))
	}
}
