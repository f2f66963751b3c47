package agent

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"adit/tunnel/agent/session"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// If the relay has several nodes, the agent keeps a second session, with a node other than that of
// the session in use. Every tunnel is claimed on both, so visitors are still served if a node is
// lost, and the second session takes over immediately, without any dialling.

const (
	secondTime  = 6 * time.Second // an attempt at a second session
	secondFirst = 200 * time.Millisecond
	secondMost  = 30 * time.Second
	secondGrace = time.Second // an agent told of new nodes waits for so long at most, by chance: others are told too
	maxNodes    = 32
)

// seconder is the state of keepSecond, which alone uses it.
type seconder struct {
	agent *Agent
	pause time.Duration
	since time.Time // of the first failure after which there was no other reason to try; zero: none
	retry time.Time
	turn  int    // which of the nodes is next
	lost  string // the node whose session ended last: it is tried after the others
}

// keepSecond maintains a second session for as long as there is a first one and another node, until
// ctx ends.
func (a *Agent) keepSecond(ctx context.Context) {
	k := &seconder{agent: a}
	timer := time.NewTimer(0)
	defer timer.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		timer.Reset(k.step(ctx))
		var ended, first <-chan struct{}
		var endedNode, firstNode string
		var since time.Time
		a.mu.Lock()
		if a.second != nil {
			ended, endedNode, since = a.second.Link.Done(), a.second.Welcome.NodeID, a.second.Since
		}
		if a.cur != nil {
			first, firstNode = a.cur.Link.Done(), a.cur.Welcome.NodeID
		}
		a.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-first:
			k.lost = firstNode
			a.takeOver()
			a.poke()
			// The keeper records the end of the first session; without a second one there is
			// nothing to do.
			select {
			case <-a.wakeSecond:
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		case <-ended:
			k.lost = endedNode
			a.dropSecond()
			if time.Since(since) < lasting { // a node that takes sessions only to end them
				k.later()
			} else {
				k.soon(secondFirst)
			}
		case <-a.wakeSecond:
			k.soon(secondGrace)
		}
	}
}

// soon starts the next attempt at a random time within wait.
func (k *seconder) soon(wait time.Duration) {
	k.pause, k.since = secondFirst, time.Time{}
	k.retry = time.Now().Add(rand.N(wait))
}

// later makes the next attempt wait longer than the last one did: while the problem is recent, a
// few seconds at most.
func (k *seconder) later() time.Duration {
	if k.since.IsZero() {
		k.since = time.Now()
	}
	most := secondMost
	if time.Since(k.since) < eager {
		most = eagerCeiling
	}
	k.pause = min(2*max(k.pause, secondFirst), most)
	wait := k.pause/2 + rand.N(k.pause)
	k.retry = time.Now().Add(wait)
	return wait
}

// step makes an attempt if one is due, and returns when to check again.
func (k *seconder) step(ctx context.Context) time.Duration {
	a := k.agent
	a.mu.Lock()
	first, second, nodes := a.cur, a.second, a.nodes
	token, clientID, epoch := a.login.token, a.login.auth.ClientID, a.login.epoch
	wished := first != nil && first.Alive() && !first.Draining() && first.Welcome.NodeID != "" && !a.login.auth.Paused
	a.mu.Unlock()
	if !wished {
		return time.Hour // whatever changes that wakes us
	}
	over := a.cfg.Transport
	candidates := slices.DeleteFunc(slices.Clone(nodes), func(n wire.Node) bool {
		return n.ID == first.Welcome.NodeID || second != nil && n.ID == second.Welcome.NodeID
	})
	switch {
	case second != nil && second.Worn() && !second.Ailing() && !second.Unlisted():
		candidates = []wire.Node{{ID: second.Welcome.NodeID, Address: second.Addr}}
	case second == nil || second.Leaving() || second.Unlisted():
		if len(candidates) == 0 {
			return time.Hour // the relay tells of others
		}
	case over == link.Auto && second.Link.Transport() == link.TLS && !second.Link.Stats().Detour:
		over = link.DTLS
		candidates = []wire.Node{{ID: second.Welcome.NodeID, Address: second.Addr}}
		if k.retry.Before(second.Since.Add(maxUpgrade)) {
			k.retry = second.Since.Add(maxUpgrade)
		}
	default:
		return time.Hour
	}
	if wait := time.Until(k.retry); wait > 0 {
		return wait
	}
	slices.SortStableFunc(candidates, func(a, b wire.Node) int { return cmp.Compare(wasLost(a, k.lost), wasLost(b, k.lost)) })
	var addrs []string
	for _, n := range candidates {
		addrs = append(addrs, n.Address)
	}
	addrs = inTurn(addrs, k.turn)
	k.turn++
	try, cancel := context.WithTimeout(ctx, secondTime)
	defer cancel()
	l, addr, err := a.connect(try, addrs, session.Joining{Token: token, ClientID: clientID, Over: over, Beside: first.Welcome.NodeID})
	if err == nil && l.Welcome.NodeID == first.Welcome.NodeID {
		l.end("another node was meant")
		err = errors.New("the same node answers at the address of another")
	}
	if err == nil {
		if !a.adoptSecond(l, epoch) {
			l.end("not wished for any more")
		}
		k.turn = 0
		k.retry = time.Now().Add(secondFirst)
		return secondFirst
	}
	if ctx.Err() == nil {
		a.log.Debug("no second session", "relay", addr, "error", err)
	}
	wait := k.later()
	if over == link.DTLS && a.cfg.Transport == link.Auto {
		k.pause = maxUpgrade
		wait = k.pause/2 + rand.N(k.pause)
		k.retry = time.Now().Add(wait)
	}
	return wait
}

// wasLost returns 1 for the node that was lost, so that it sorts after the others.
func wasLost(n wire.Node, lost string) int {
	if n.ID == lost {
		return 1
	}
	return 0
}

// adoptSecond makes l the second session, if the token is still that of epoch.
func (a *Agent) adoptSecond(l *live, epoch int) bool {
	a.mu.Lock()
	if a.closed || epoch != a.login.epoch || !a.login.wished() || a.cur == nil || a.cur.Welcome.NodeID == l.Welcome.NodeID {
		a.mu.Unlock()
		return false
	}
	before := a.second
	a.second, l.epoch = l, epoch
	a.unserved = append(a.unserved, l)
	a.mu.Unlock()
	if before != nil {
		before.Retire(0)
	}
	a.log.Info("second session with the relay", "relay", l.Addr, "node", l.Welcome.Node, "transport", string(l.Link.Transport()))
	a.told(l, l.Welcome.Nodes)
	a.poke()
	return true
}

// takeOver makes the second session the one in use, if the first has ended or should be replaced
// and the second is fit. It reports whether it did.
func (a *Agent) takeOver() bool {
	a.mu.Lock()
	before, l := a.cur, a.second
	if before != nil && before.Alive() && !before.Leaving() || !l.fit() || !a.login.wished() || a.standing.rejected {
		a.mu.Unlock()
		return false
	}
	a.cur, a.second = l, nil
	a.standing.goesOn()
	for _, t := range a.tunnels {
		if t.other.live == l {
			t.first, t.other = t.other, held{}
		}
	}
	a.mu.Unlock()
	if before != nil {
		before.Retire(0)
	}
	a.log.Info("second session has taken over", "relay", l.Addr, "node", l.Welcome.Node)
	l.look()
	a.publish()
	a.wantSecond()
	return true
}

// dropSecond forgets a second session that has ended.
func (a *Agent) dropSecond() {
	a.mu.Lock()
	l := a.second
	ended := l != nil && !l.Alive()
	if ended {
		a.second = nil
	}
	a.mu.Unlock()
	if ended {
		a.log.Warn("second session lost", "relay", l.Addr, "error", l.Link.Err())
	}
}

// told processes the list of nodes from the relay of l.
func (a *Agent) told(l *live, list []wire.Node) {
	var good []wire.Node
	for _, n := range list {
		if len(good) < maxNodes && n.ID != "" && len(n.ID) <= 64 && validRelay(n.Address) {
			good = append(good, n)
		}
	}
	a.mu.Lock()
	if !a.servesLocked(l) {
		a.mu.Unlock()
		return
	}
	news := !slices.Equal(byID(a.nodes), byID(good))
	a.nodes = good
	first, second := a.cur, a.second
	a.mu.Unlock()
	if !news {
		return
	}
	for _, other := range []*live{first, second} {
		if other != nil && other != l {
			other.List(slices.ContainsFunc(good, func(n wire.Node) bool { return n.ID == other.Welcome.NodeID }))
		}
	}
	a.wantSecond()
}

// byID returns the list in an order that is the same for every announcement.
func byID(list []wire.Node) []wire.Node {
	return slices.SortedFunc(slices.Values(list), func(a, b wire.Node) int { return strings.Compare(a.ID, b.ID) })
}
