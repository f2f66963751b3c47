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

// claimers is how many claims are asked for at once when a session begins.
const claimers = 16

// claimPause is how long the first claims that the relay could not answer wait
// for another try.
const claimPause = 500 * time.Millisecond

// errLeft is the end of a claim on a session that another has taken over from:
// it would take the tunnel back, and to its end.
var errLeft = errors.New("another session has taken over")

// claim asks the relay for t's endpoint on l, unless l has it already. A refusal
// is noted in t if note is set; it is returned in any case. A relay that does
// not answer is waited for no longer than relayWait: a stop waits for the claim.
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
		// What the relay gave before is another's now: anything will do.
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

// takeDownStale has the relay of l take down what t was before; t.claiming is held.
// Whom it sends until then, or if it cannot be told, finds no tunnel here.
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

// asked is what a claim has come to.
type asked struct {
	rev          int // of what was asked for
	got          wire.Grant
	err          error
	chosen       bool // it asked for this name or port
	beside, note bool
}

// asked notes what a claim of t on l has come to. It returns the sessions that are to
// take down what t was before, since the relay, or one node of it, does not do what it
// is now, and whether nobody serves t any more.
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
		// The relay may have it all the same, and would send visitors where nobody is
		// for them: under a steady load the session would never be without streams.
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

// takeBackLocked sees to it that a claim is taken back that was on its way when t was
// withdrawn, which did not wait for it, or not to its end; err is how it ended.
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

// look wakes claimAll to look for tunnels to claim. On a nil session it does
// nothing.
func (l *live) look() {
	if l == nil {
		return
	}
	select {
	case l.again <- struct{}{}:
	default:
	}
}

// claimAll gives back what is to be given back and claims every tunnel that
// should run, and looks again when it is told to, until ctx ends.
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

// claimRound tries every tunnel once and returns how many should be tried again. Where
// one got what it asked for, what another was refused may be free by now: then it has
// claimAll look again, and the log need not tell of the refusal yet.
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
		// Those that asked for what another has, and what they were told.
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

// releaseAll gives back the claims of tunnels that were deleted while the relay
// could not be told, and returns how many are left. The second session leaves
// them to the first.
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

// leftLocked reports whether other sessions are in use in place of l.
func (l *live) leftLocked() bool { return l.agent.cur != l && l.agent.second != l }

// owe notes that the relay could not be told to take t's endpoint down.
func (l *live) owe(t *tunnel, err error) {
	l.agent.mu.Lock()
	defer l.agent.mu.Unlock()
	l.oweLocked(t, err)
}

// oweLocked is owe. It reports whether it is owed.
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

// takeDown tells the relay of the stops that it could not be told of, and
// returns how many are left. It would send visitors to a stopped tunnel until
// the session ends.
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

// release gives a claim back, waiting for the relay no longer than relayWait.
func (l *live) release(ctx context.Context, key string, keep bool) error {
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	return l.Control.Release(ctx, key, keep)
}

// grants sums up what the relay has given, to tell whether it must be saved.
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

// claimLost notes that the relay took the endpoint of the tunnel id away.
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

// session waits until there is a session in use other than not, for as long as
// ctx lasts. It returns nil without error if the agent is paused.
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

// claimNow claims t on the session in use, waiting for one for relayWait. It
// returns nil without a claim if the agent is paused.
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
		// The session broke under the claim: the next one may do.
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

// wantsLocked reports whether t is to be claimed on l. The second session has
// the tunnels that the first has: what name a tunnel gets is settled there.
func (l *live) wantsLocked(t *tunnel) bool {
	switch {
	case t.deleted || t.stopped || t.fault != "":
		return false
	case l.agent.second != l:
		return !t.first.by(l, t.rev)
	}
	return t.failure == "" && t.first.live != nil && t.first.rev == t.rev && !t.other.by(l, t.rev)
}
