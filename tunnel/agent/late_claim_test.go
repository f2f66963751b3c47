package agent

import (
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// TestAClaimThatALeftSessionHadUnderWayIsTakenDown: a node that is slow has the claim of
// the second session under way when that is left for one with another node. It serves the
// tunnel after that, and sends it visitors whom nobody there knows.
func TestAClaimThatALeftSessionHadUnderWayIsTakenDown(t *testing.T) {
	all := newFakeNodes(t, 3)
	slow, may := make(chan *fakeRelay, 2), make(chan struct{})
	for _, r := range all[1:] {
		r.set(func() {
			r.inTurn = true
			r.onClaim = func(string, wire.Claim) *wire.Problem {
				select {
				case slow <- r:
				default:
				}
				<-may
				return nil
			}
		})
	}
	a, _ := configured(t, all[0], Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	left := <-slow
	other := all[1]
	if other == left {
		other = all[2]
	}
	other.set(func() { other.onClaim = nil })
	var nodes []wire.Node
	for _, n := range all[0].nodes {
		if n.Address != left.addr {
			nodes = append(nodes, n)
		}
	}
	all[0].session().events <- wire.Event{Type: wire.EventNodes, Nodes: nodes}
	eventually(t, "the other node has the tunnel", func() bool { return other.serves(tun.ID) })
	close(may)
	eventually(t, "the slow node has it no more", func() bool {
		left.mu.Lock()
		defer left.mu.Unlock()
		return left.kept[tun.ID]
	})
	if !other.serves(tun.ID) || !all[0].serves(tun.ID) {
		t.Error("the tunnel was taken down where it is served")
	}
}
