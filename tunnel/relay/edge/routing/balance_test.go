package routing

import (
	"math"
	"testing"

	"adit/tunnel/relay/edge/origin/origintest"
)

// TestTurnsGoOnWithoutEnd picks at the turn that is negative as an int of 32 bits.
func TestTurnsGoOnWithoutEnd(t *testing.T) {
	var ep Endpoint
	list := []*Backend{{Key: "a", Agent: &Agent{Session: new(origintest.Session)}}, {Key: "b", Agent: &Agent{Session: new(origintest.Session)}}}
	ep.set(list)
	for _, turn := range []uint32{math.MaxInt32, math.MaxInt32 + 1, math.MaxUint32} {
		ep.turn.Store(turn)
		if got := ep.Pick(); len(got) != len(list) {
			t.Errorf("at turn %d: got %d of %d tunnels", turn, len(got), len(list))
		}
	}
}
