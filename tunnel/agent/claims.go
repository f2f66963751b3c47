package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/state"
	"adit/tunnel/wire"
)

// claimers is how many claims are requested at once when a session begins.
const claimers = 16

// claimPause is how long the first claims that the relay could not answer wait for another try.
const claimPause = 500 * time.Millisecond

// errLeft is the error of a claim on a session that another has replaced: the old session would
// take the tunnel back and keep it until it ends.
var errLeft = errors.New("another session has taken over")

// claim asks the relay for t's endpoint on l, unless l has it already. If note is set, a refusal is
// recorded in t; it is returned in any case. It waits no longer than relayWait for the relay,
// because a stop waits for the claim.
func (l *live) claim(ctx context.Context, t *tunnel, note bool) error {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	a := l.agent
	t.claiming.Lock()
	defer t.claiming.Unlock()
	a.mu.Lock()
	if a.cur != l && a.second != l {
		a.mu.Unlock()
		return errLeft
	}
	if !l.wantsLocked(t) {
		a.mu.Unlock()
		return nil
	}
	rev, want, remembers, beside := t.rev, t.claim(false), t.remembers(), a.second == l
	if beside {
		remembers = false // only the first session may settle for another name
	}
	t.asking = l
	chosen := t.spec.Domain != "" || t.spec.RemotePort != 0
	forgo := !beside && !chosen && t.grant.GivenUp && t.grant.Chosen
	a.mu.Unlock()
	var (
		got wire.Grant
		err error
	)
	if forgo { // else the relay would give back what it has for the tunnel
		err = l.forgo(ctx, t)
	}
	if err == nil {
		got, err = l.Control.Claim(ctx, t.id, want)
	}
	if remembers && control.Refused(err) {
		// What the relay gave before now belongs to somebody else, so anything will do.
		a.mu.Lock()
		want = t.claim(true)
		a.mu.Unlock()
		got, err = l.Control.Claim(ctx, t.id, want)
	}
	stale, gone := l.asked(t, asked{rev, got, err, chosen, beside, note})
	if gone {
		t.forward.Cut()
	}
	for _, had := range stale {
		had.takeDownStale(ctx, t)
	}
	return err
}

// takeDownStale makes the relay of l take down t's old endpoint; t.claiming is held. Visitors whom
// the relay sends until then, or if it cannot be told, find no tunnel here.
func (l *live) takeDownStale(ctx context.Context, t *tunnel) {
	a := l.agent
	a.mu.Lock()
	t.asking = l
	a.mu.Unlock()
	err := l.release(ctx, t.id, true)
	a.mu.Lock()
	defer a.mu.Unlock()
	t.asking = nil
	if err != nil && l.oweLocked(t, err) { // should it be stopped by now
		l.look()
	}
}

// asked is the result of a claim.
type asked struct {
	rev          int // of what was asked for
	got          wire.Grant
	err          error
	chosen       bool // it asked for this name or port
	beside, note bool
}

// asked records the result of a claim of t on l. It returns the sessions that must take down t's
// old endpoint, because the relay, or one node of it, does not serve the current one, and whether
// nobody serves t any more.
func (l *live) asked(t *tunnel, c asked) (stale []*live, gone bool) {
	a := l.agent
	a.mu.Lock()
	defer a.mu.Unlock()
	t.asking = nil
	refused := control.Refused(c.err) && t.rev == c.rev
	switch {
	case t.deleted, (c.beside || a.second == l) && t.stopped:
		l.takeBackLocked(t, c.err)
	case l.leftLocked() && c.err != nil && !control.Answered(c.err):
		// The relay may have granted it nevertheless, and would send visitors where nobody serves
		// them: under a steady load, the session would never be without streams.
		l.oweLocked(t, c.err)
	case a.second == l && c.err == nil:
		t.holdLocked(&t.other, held{live: l, rev: c.rev, number: c.got.Number})
	case a.second == l:
		if refused && t.other.live == l {
			t.leaveLocked(&t.other)
			stale = []*live{l}
		}
	case c.err == nil:
		t.holdLocked(&t.first, held{live: l, rev: c.rev, number: c.got.Number})
		t.endpointID = c.got.EndpointID
		t.failure, t.delay = "", ""
		t.grant = state.Grant{PublicURL: c.got.PublicURL, Domain: c.got.Domain, RemotePort: c.got.RemotePort, Chosen: c.chosen}.Of(t.spec)
		t.since = time.Now()
		a.second.look()
	case c.note && control.Answered(c.err) && t.rev == c.rev && !refused:
		t.delay = control.Clip(c.err.Error())
	case refused && c.note:
		t.failure, t.delay = control.Clip(c.err.Error()), ""
		if t.first.live != l {
			break
		}
		if stale = []*live{l}; t.other.live != nil {
			stale = append(stale, t.other.live)
		}
		t.unclaimLocked()
		gone = true
	}
	return stale, gone
}

// takeBackLocked makes sure that a claim is taken back that was in progress when t was withdrawn,
// if the withdrawal did not wait for its end; err is how it ended.
func (l *live) takeBackLocked(t *tunnel, err error) {
	if !l.oweLocked(t, err) {
		return
	}
	if t.deleted { // its name, too, which the first may have given back before
		l.agent.releases[t.id] = true
		l.agent.cur.look()
	}
	l.look()
}

// look makes claimAll look for tunnels to claim. On a nil session it does nothing.
func (l *live) look() {
	if l == nil {
		return
	}
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// claimAll gives back what has to be given back and claims every tunnel that should run, and does
// so again whenever it is told to, until ctx ends.
func (l *live) claimAll(ctx context.Context) {
	a := l.agent
	for wait := claimPause; ; wait = min(2*wait, 30*time.Second) {
		before := a.grants()
		left := l.releaseAll(ctx) + l.takeDown(ctx) + l.claimRound(ctx)
		if ctx.Err() == nil && (a.grants() != before || a.unsaved.Load()) {
			if err := a.saveTunnels(); err != nil {
				a.log.Error("tunnels not saved; it is tried again", "error", err)
				left++
			}
		}
		a.publish()
		var later <-chan time.Time
		if left > 0 {
			later = time.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-l.again:
			wait = claimPause
		case <-later:
		}
	}
}

// claimRound tries every tunnel once and returns how many should be tried again. If a tunnel got
// what it asked for, something that another was refused may be free by now: claimAll then looks
// again, and the refusal need not be logged yet.
func (l *live) claimRound(ctx context.Context) int {
	a := l.agent
	a.mu.Lock()
	var todo []*tunnel
	for _, t := range a.sortedLocked() {
		if l.wantsLocked(t) {
			todo = append(todo, t)
		}
	}
	a.mu.Unlock()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		left int
		got  int // how many were granted
		// Tunnels that asked for what another one has, and the refusals that they got.
		lost     []*tunnel
		refusals []error
		next     = make(chan *tunnel)
	)
	for range min(claimers, len(todo)) {
		wg.Go(func() {
			for t := range next {
				err := l.claim(ctx, t, true)
				p, _ := errors.AsType[*wire.Problem](err)
				taken := p != nil && p.Code == wire.CodeTaken
				if err != nil && !taken {
					a.log.Warn("tunnel not claimed", "tunnel", t.id, "error", err)
				}
				mu.Lock()
				switch {
				case err == nil:
					got++
				case taken:
					lost, refusals = append(lost, t), append(refusals, err)
				case !control.Refused(err):
					left++
				}
				mu.Unlock()
			}
		})
	}
	for i, t := range todo {
		if ctx.Err() != nil {
			break
		}
		next <- t
		if i%32 == 31 {
			a.publish()
		}
	}
	close(next)
	wg.Wait()
	if len(lost) > 0 && (got > 0 || l.forgoFor(ctx, lost)) {
		l.look()
		return left
	}
	for i, t := range lost {
		a.log.Warn("tunnel not claimed", "tunnel", t.id, "error", refusals[i])
	}
	return left
}

// releaseAll gives back the claims of tunnels that were deleted while the relay could not be told,
// and returns how many are left. The second session leaves this to the first.
func (l *live) releaseAll(ctx context.Context) int {
	a := l.agent
	a.mu.Lock()
	var keys []string
	for key := range a.releases {
		if a.second != l && a.tunnels[key] == nil && key != a.making {
			keys = append(keys, key)
		}
	}
	a.mu.Unlock()
	done := 0
	for _, key := range keys {
		if err := l.release(ctx, key, false); err != nil && !control.Refused(err) {
			continue
		}
		a.mu.Lock()
		delete(a.releases, key)
		a.mu.Unlock()
		done++
	}
	if done > 0 {
		if err := a.saveTunnels(); err != nil {
			a.log.Error("tunnels not saved", "error", err)
		}
	}
	return len(keys) - done
}

// leftLocked reports whether other sessions are in use instead of l.
func (l *live) leftLocked() bool { return l.agent.cur != l && l.agent.second != l }

// owe records that the relay could not be told to take t's endpoint down.
func (l *live) owe(t *tunnel, err error) {
	l.agent.mu.Lock()
	defer l.agent.mu.Unlock()
	l.oweLocked(t, err)
}

// oweLocked is like owe with the mutex held. It reports whether the endpoint is now owed.
func (l *live) oweLocked(t *tunnel, err error) bool {
	if control.Refused(err) {
		return false // the relay has refused: asking again would not help
	}
	if l.owed == nil {
		l.owed = make(map[*tunnel]struct{})
	}
	l.owed[t] = struct{}{}
	return true
}

// takeDown tells the relay about the stops that it could not be told about before, and returns how
// many are left. Otherwise it would send visitors to a stopped tunnel until the session ends.
func (l *live) takeDown(ctx context.Context) int {
	a := l.agent
	a.mu.Lock()
	todo := slices.Collect(maps.Keys(l.owed))
	a.mu.Unlock()
	left := 0
	for _, t := range todo {
		if err := l.takeDownOne(ctx, t); err != nil && !control.Refused(err) {
			left++
		}
	}
	return left
}

func (l *live) takeDownOne(ctx context.Context, t *tunnel) error {
	a := l.agent
	t.claiming.Lock()
	defer t.claiming.Unlock()
	a.mu.Lock()
	runs := !t.stopped && !t.deleted && !l.leftLocked() // again: its claim is what the relay has of it
	t.asking = l
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		t.asking = nil
		a.mu.Unlock()
	}()
	var err error
	if !runs {
		if err = l.release(ctx, t.id, true); err != nil && !control.Refused(err) {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(l.owed, t)
	return err
}

// release gives a claim back. It waits no longer than relayWait for the relay.
func (l *live) release(ctx context.Context, key string, keep bool) error {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	return l.Control.Release(ctx, key, keep)
}

// grants summarises what the relay has given, to detect whether it must be saved.
func (a *Agent) grants() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := make([]byte, 0, 64*len(a.tunnels))
	for _, t := range a.sortedLocked() {
		sum = append(sum, t.id...)
		sum = append(sum, t.grant.PublicURL...)
	}
	return string(sum)
}

// claimLost records that the relay took away the endpoint of the tunnel id.
func (a *Agent) claimLost(l *live, id, reason string) {
	a.mu.Lock()
	t := a.tunnels[id]
	if t != nil && t.other.live == l {
		t.leaveLocked(&t.other)
	}
	if t == nil || t.first.live != l {
		a.mu.Unlock()
		return
	}
	t.failure = "the relay took the endpoint away: " + reason
	t.leaveLocked(&t.first)
	a.mu.Unlock()
	a.log.Warn("endpoint lost", "tunnel", id, "reason", reason)
	t.forward.Cut()
	a.publish()
}

// session waits for a session in use other than not, until ctx ends. It returns nil without an
// error if the agent is paused.
func (a *Agent) session(ctx context.Context, not *live) (*live, *refusal.Error) {
	for {
		a.mu.Lock()
		l, state, last := a.cur, a.stateLocked(), a.standing.lastError
		rejected, changed := a.rejectedLocked(), a.waitChangeLocked()
		a.mu.Unlock()
		switch {
		case state == StateUnconfigured:
			return nil, notConfigured()
		case state == StatePaused:
			return nil, nil
		case state == StateRejected:
			return nil, rejected
		case l != nil && l != not && l.Alive() && !l.Draining():
			return l, nil
		}
		timer := time.NewTimer(time.Second) // a session may have died unannounced
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, &refusal.Error{Code: refusal.CodeRelayUnreachable, Message: cmp.Or(last, "the relay does not answer; try again in a moment")}
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// claimNow claims t on the session in use, waiting up to relayWait for one. It returns nil without
// a claim if the agent is paused.
func (a *Agent) claimNow(ctx context.Context, t *tunnel) *refusal.Error {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	var not *live
	for {
		l, no := a.session(ctx, not)
		if no != nil {
			return no
		}
		if l == nil {
			return nil
		}
		err := l.claim(ctx, t, false)
		if err == nil {
			return nil
		}
		if control.Refused(err) || control.Answered(err) && !l.Draining() || ctx.Err() != nil {
			return control.Refusal(err, "")
		}
		// The session broke during the claim; the next one may succeed.
		select {
		case <-l.Link.Done():
			not = l
		case <-l.Retired():
			not = l
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// wantsLocked reports whether t should be claimed on l. The second session only has tunnels that
// the first has: a tunnel's name is settled there.
func (l *live) wantsLocked(t *tunnel) bool {
	switch {
	case t.deleted || t.stopped || t.fault != "":
		return false
	case l.agent.second != l:
		return !t.first.by(l, t.rev)
	}
	return t.failure == "" && t.first.live != nil && t.first.rev == t.rev && !t.other.by(l, t.rev)
}
