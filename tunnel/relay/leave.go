package relay

import (
	"context"
	"math/rand/v2"
	"time"

	"adit/internal/monotime"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/roster"
	"adit/tunnel/wire"
)

const (
	// moveTime is how long a node that shuts down waits until another node serves its
	// agents.
	moveTime = 10 * time.Second
	// Every turn, rebalancing moves a share of a node's surplus sessions.
	balanceTurn  = 5 * time.Second
	balanceSlack = 1.15             // times the mean of all nodes
	settled      = 15 * time.Second // a session is not moved earlier
)

// moveOff moves visitors to other nodes before this one stops accepting them: agents are
// told to move, other edges turn to the agents' sessions elsewhere, and load balancers
// see that the node is not ready. A node that is alone, or whose peers do not answer, has
// nowhere to move anybody.
func (r *Relay) moveOff(ctx context.Context) {
	if len(r.members.Others()) == 0 {
		return
	}
	begin := time.Now()
	r.mesh.Drain()
	r.members.Renew(ctx)
	list := r.roster.All()
	for _, s := range list {
		s.agent.Leaving.Store(true)
	}
	var faces []routing.Face
	for _, ep := range r.edge.Endpoints() {
		faces = append(faces, ep.Face)
	}
	r.edge.Reorder(faces...)
	leave, _ := time.ParseDuration(r.cfg.Nodes.Leave)
	ctx, cancel := context.WithTimeout(ctx, max(moveTime, leave))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		stay := 0
		for _, s := range list {
			if s.link.Err() == nil && !r.servedElsewhere(s) {
				stay++
			}
		}
		if stay == 0 && time.Since(begin) >= leave {
			r.log.Info("agents are served by other nodes", "after", time.Since(begin).Round(time.Millisecond))
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if stay > 0 {
				r.log.Warn("agents did not move to another node in time", "count", stay)
			}
			return
		}
	}
}

// servedElsewhere reports whether all tunnels of a session are also served elsewhere.
func (r *Relay) servedElsewhere(s *session) bool {
	s.mu.Lock()
	keys := make([]string, 0, len(s.tunnels))
	for key := range s.tunnels {
		keys = append(keys, key)
	}
	s.mu.Unlock()
	for _, key := range keys {
		if !r.far.Serves(roster.Agent{Client: s.agent.ClientID, Instance: s.agent.Instance}, key) {
			return false
		}
	}
	return true
}

// rebalance asks some of this node's agents to move while it has more of them than the
// other nodes, for example after a node has joined.
func (r *Relay) rebalance(ctx context.Context) {
	turn, _ := r.balance()
	tick := time.NewTicker(turn)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, s := range r.toMove() {
			s.asked.Store(int64(monotime.Now()))
			r.log.Info("agent is asked to move to another node", "client", s.client.Name, "instance", s.hello.Instance)
			list := r.members.ForAgent()
			list = list[:max(0, len(list)-1)] // not this one
			s.tell(wire.Event{Type: wire.EventDrain, Reason: "another node of the relay is less busy", Nodes: list, Addresses: addresses(list)})
		}
	}
}

// balance returns how often this node checks, and how long a session stays before it is
// moved.
func (r *Relay) balance() (turn, stays time.Duration) {
	if hurried := r.opts.balance; hurried > 0 {
		return hurried, hurried
	}
	return balanceTurn, settled
}

// toMove picks the sessions that should move now: about a tenth of the surplus, and at
// least one.
func (r *Relay) toMove() []*session {
	others := r.members.Others()
	if len(others) == 0 || r.roster.Closed() {
		return nil
	}
	_, stays := r.balance()
	var list []*session // without those that are about to move
	all := r.roster.All()
	for _, s := range all {
		if at := s.asked.Load(); at == 0 || monotime.Now()-time.Duration(at) > settled {
			list = append(list, s)
		}
	}
	// What the others report now, not what their leases said seconds ago.
	total, on := len(all), r.far.SessionsOn()
	for _, n := range others {
		total += on[n.ID]
	}
	extra := tooMany(len(list), total, len(others)+1)
	if extra < 1 {
		return nil
	}
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	var picked []*session
	for _, s := range list {
		if len(picked) > extra/10 {
			break
		}
		if time.Since(s.since) > stays && s.asked.Load() == 0 {
			picked = append(picked, s)
		}
	}
	return picked
}

// tooMany returns how many sessions one of several nodes should give away, given the
// total of all nodes. It is none if the node's share is within balanceSlack, or if
// another node would then have one too many instead.
func tooMany(own, total, nodes int) int {
	if float64(own*nodes) <= float64(total)*balanceSlack {
		return 0
	}
	return max(0, own-(total+nodes-1)/nodes)
}
