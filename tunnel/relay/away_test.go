package relay

import (
	"strconv"
	"testing"
	"time"
)

// A client with ever new instances is remembered at its own cost.
func TestAgentsThatAreAwayAreBounded(t *testing.T) {
	r := &Relay{away: make(map[instanceKey]time.Time)}
	other := instanceKey{"other", "i1"}
	r.wentAway(other)
	for i := range 2 * maxAway {
		r.wentAway(instanceKey{"busy", strconv.Itoa(i)})
	}
	if n := len(r.away); n > maxAway {
		t.Errorf("%d agents are remembered, of at most %d", n, maxAway)
	}
	if r.away[other].IsZero() || r.away[instanceKey{"busy", strconv.Itoa(2*maxAway - 1)}].IsZero() {
		t.Error("the other client's agent is forgotten, or the newest")
	}
}
