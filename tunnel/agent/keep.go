package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/session"
	"adit/tunnel/link"
)

// Times of the keeper.
const (
	attemptTime    = 15 * time.Second
	quickAttempt   = 6 * time.Second // the first attempts: a relay that restarts may swallow the first packets
	firstUpgrade   = 5 * time.Second // after TLS won, until DTLS is tried again; a detour ends by itself
	maxUpgrade     = time.Minute
	reconnectGrace = 30 * time.Second
	// lasting is how long a session must have lived for another attempt to start at once when it is
	// lost or should be replaced.
	lasting = 10 * time.Second
)

// outcome is the result of an attempt at a session.
type outcome struct {
	live  *live
	err   error
	addr  string
	epoch int
	// upgrade is set if the attempt was for DTLS while a TLS session exists.
	upgrade bool
}

// keeper is the state of keep, which alone uses it.
type keeper struct {
	agent   *Agent
	back    backoff
	retry   time.Time // not before; zero: now
	attempt context.CancelFunc
	results chan outcome
	despite bool // the attempt is made with a token that was refused
	// served is the session in use to which upgrade belongs.
	served    *live
	upgrade   time.Time
	upgrading time.Duration
}

// keep maintains a session for as long as one is wanted, until ctx ends. It waits for everything
// that it started.
func (a *Agent) keep(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k := &keeper{agent: a, results: make(chan outcome)}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := min(k.step(ctx, &wg), a.saveMoved(false))
		a.publish()
		timer.Reset(wait)
		var ended <-chan struct{}
		if k.served != nil {
			ended = k.served.Link.Done()
		}
		select {
		case <-ctx.Done():
			a.saveMoved(true)
			return
		case <-a.wake:
		case <-timer.C:
		case <-ended:
			k.lost()
		case r := <-k.results:
			k.attempt = nil
			k.ended(r)
		case <-a.cfg.NetworkChanged:
			k.network(ctx, &wg)
		}
	}
}

// step compares what is wanted with what there is, starts what is needed, and returns when to check
// again at the latest.
func (k *keeper) step(ctx context.Context, wg *sync.WaitGroup) time.Duration {
	a := k.agent
	a.takeOver()
	a.mu.Lock()
	begin := a.unserved
	a.unserved = nil
	a.served = append(a.served, begin...)
	cur, asked := a.cur, a.reconnect
	now := time.Now()
	may := a.login.wished()
	wished := may && (a.standing.tries(now) || asked || k.attempt != nil && k.despite)
	later := time.Hour
	if next, ok := a.standing.next(now); may && ok {
		later = next
	}
	a.mu.Unlock()
	for _, l := range begin {
		wg.Go(func() {
			l.serve(ctx)
			a.mu.Lock()
			defer a.mu.Unlock()
			a.served = slices.DeleteFunc(a.served, func(o *live) bool { return o == l })
		})
	}
	if cur != k.served {
		sentOff := k.served != nil && k.served.Leaving() && now.Sub(k.served.Since) < lasting
		k.served = cur
		if cur != nil {
			k.stop()
			k.retry = time.Time{}
			if sentOff { // a relay that takes sessions only to have them move on: this may be another
				k.retry = now.Add(k.back.next())
			}
			k.upgrading = firstUpgrade
			k.upgrade = time.Now().Add(k.upgrading)
		}
	}
	if !wished {
		k.stop()
		k.back.reset()
		return later
	}
	if k.attempt != nil {
		return time.Hour
	}
	if cur != nil && time.Since(cur.Since) > lasting && k.back.since.Before(cur.Since) {
		k.back.reset() // what failed before it is over
	}
	switch {
	case asked:
		k.begin(ctx, wg, a.cfg.Transport, false)
	case cur == nil || cur.Leaving():
		if wait := k.retry.Sub(now); wait > 0 {
			return wait
		}
		k.begin(ctx, wg, a.cfg.Transport, false)
	case a.cfg.Transport == link.Auto && cur.Link.Transport() == link.TLS && !cur.Link.Stats().Detour:
		if wait := k.upgrade.Sub(now); wait > 0 {
			return wait
		}
		k.begin(ctx, wg, link.DTLS, true)
	}
	return time.Hour
}

// stop ends the current attempt; its outcome is discarded because of its epoch, or because keep
// ends.
func (k *keeper) stop() {
	if k.attempt != nil {
		k.attempt()
	}
}

// begin starts an attempt.
func (k *keeper) begin(ctx context.Context, wg *sync.WaitGroup, over link.Transport, upgrade bool) {
	a := k.agent
	a.mu.Lock()
	a.reconnect = false
	k.despite = a.standing.rejected
	token, clientID, epoch := a.login.token, a.login.auth.ClientID, a.login.epoch
	addrs := a.login.addrs()
	beside := ""
	if a.second != nil && a.second.Alive() {
		beside = a.second.Welcome.NodeID
	}
	a.mu.Unlock()
	addrs = inTurn(addrs, k.back.failed)
	if upgrade && k.served != nil {
		addrs = []string{k.served.Addr}
	}
	limit := attemptTime
	if k.back.failed < 3 || upgrade {
		limit = quickAttempt
	}
	try, cancel := context.WithTimeout(ctx, limit)
	k.attempt = cancel
	wg.Go(func() {
		defer cancel()
		l, addr, err := a.connect(try, addrs, session.Joining{Token: token, ClientID: clientID, Over: over, Beside: beside})
		select {
		case k.results <- outcome{live: l, err: err, addr: addr, epoch: epoch, upgrade: upgrade}:
		case <-ctx.Done():
			if l != nil {
				l.end("the agent ends")
			}
		}
	})
}

// ended processes the outcome of an attempt.
func (k *keeper) ended(r outcome) {
	a := k.agent
	if r.err == nil {
		if !a.adopt(r.live, r.epoch, 0) {
			r.live.end("not wished for any more")
		}
		return
	}
	if tell := k.failed(r); tell != nil {
		tell()
	}
}

// failed records that an attempt has failed. It returns a function that writes the log, which may
// block and so must not be called with the mutex held; nil if there is nothing to log.
func (k *keeper) failed(r outcome) (tell func()) {
	a := k.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.epoch != a.login.epoch || errors.Is(r.err, context.Canceled) {
		return nil
	}
	a.standing.attempts++
	if r.upgrade {
		k.upgrading = min(2*k.upgrading, maxUpgrade)
		k.upgrade = time.Now().Add(k.upgrading)
		return func() { a.log.Debug("no way for dtls yet", "relay", r.addr, "error", r.err) }
	}
	wait := k.back.next()
	k.retry = time.Now().Add(wait)
	if !a.standing.failed(r.err, r.addr) {
		return func() {
			a.log.Debug("a refused token could not be tried again", "relay", r.addr, "error", r.err)
		}
	}
	if control.Final(r.err) {
		return func() { a.log.Error("relay refuses the token", "relay", r.addr, "error", r.err) }
	}
	return func() {
		a.log.Warn("no session with the relay", "relay", r.addr, "error", r.err, "next_in", wait.Round(time.Millisecond))
	}
}

// lost records the end of the session in use.
func (k *keeper) lost() {
	a := k.agent
	l := k.served
	k.served = nil
	if time.Since(l.Since) > lasting {
		k.back.reset()
	} else {
		// A relay that accepts sessions only to end them is not asked again at once.
		k.retry = time.Now().Add(k.back.next())
	}
	if a.takeOver() {
		a.log.Warn("session lost", "relay", l.Addr, "error", l.Link.Err())
		return
	}
	a.mu.Lock()
	mine := a.cur == l
	if mine {
		a.cur = nil
		a.standing.lost(l.Link.Err(), l.Addr)
	}
	a.mu.Unlock()
	if !mine {
		return
	}
	a.log.Warn("session lost", "relay", l.Addr, "error", l.Link.Err())
}

// network reacts to a change of network: all waits end, and an existing session has to prove that
// it is alive.
func (k *keeper) network(ctx context.Context, wg *sync.WaitGroup) {
	k.retry = time.Time{}
	k.back.reset()
	k.upgrading = firstUpgrade
	k.upgrade = time.Now().Add(time.Second)
	k.agent.mu.Lock()
	second := k.agent.second
	k.agent.mu.Unlock()
	for _, l := range []*live{k.served, second} {
		if l == nil {
			continue
		}
		k.agent.log.Info("network changed", "relay", l.Addr)
		l.NetworkChanged()
		wg.Go(func() {
			if !l.Probe(ctx) {
				l.doubted()
			}
		})
	}
}

// adopt makes l the session in use, if the token is still that of epoch, and retires the previous
// one with the given grace.
func (a *Agent) adopt(l *live, epoch int, grace time.Duration) bool {
	a.mu.Lock()
	if a.closed || epoch != a.login.epoch || !a.login.wished() {
		a.mu.Unlock()
		return false
	}
	before := a.cur
	a.cur, l.epoch = l, epoch
	a.unserved = append(a.unserved, l)
	a.standing.welcomed()
	save := a.login.accept(l.Welcome.ClientID)
	a.mu.Unlock()
	if before != nil {
		before.Retire(grace)
	}
	a.log.Info("session with the relay", "relay", l.Addr, "transport", string(l.Link.Transport()), "client", l.Welcome.ClientName)
	a.told(l, l.Welcome.Nodes)
	a.wantSecond()
	if a.moved(l, l.Welcome.Addresses) == nil && save {
		_ = a.saveAuth()
	}
	a.publish()
	a.poke()
	return true
}

// refuse records that the relay of l no longer accepts the token, or not for now.
func (a *Agent) refuse(l *live, reason string, p pardon) {
	a.mu.Lock()
	if !a.servesLocked(l) {
		a.mu.Unlock()
		return
	}
	first, second := a.cur, a.second
	a.cur, a.second = nil, nil
	a.standing.refused(reason, p)
	a.mu.Unlock()
	for _, other := range []*live{first, second} {
		if other != l {
			other.end("revoked")
		}
	}
	a.log.Error("session ended by the relay", "relay", l.Addr, "reason", reason)
	_ = l.Link.Close("revoked")
	a.publish()
	a.poke()
}

// inTurn returns the list rotated to begin with the element whose turn it is, without duplicates.
func inTurn(list []string, turn int) []string {
	turn %= len(list)
	var out []string
	for _, v := range slices.Concat(list[turn:], list[:turn]) {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
