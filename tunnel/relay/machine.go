package relay

import (
	"math"

	"adit/internal/allowance"
)

// What a configuration leaves open is as much as the machine has: a bound that suits a
// large one is none for a small one, which a stranger could have killed for want of
// memory, or of files that agents and the store need.
const (
	ofVisitor   = 128 << 10 // bytes: a connection with the head of a request as large as may be
	leastGuests = 64
	mostWaiting = 1 << 30
	ofFlow      = 1 << 10 // bytes: a visitor of a udp endpoint
)

// visitorsFor is how many connections of visitors there is memory and files for. Half of
// the memory is for them, and a quarter of the files for all else.
func visitorsFor(memory int64, files int) int {
	return int(max(min(memory/2/ofVisitor, int64(files/4*3), math.MaxInt32), leastGuests))
}

// waitingFor is how many bytes may wait for readers, for each of three: in sessions, for
// visitors by HTTP/2, and for origins.
func waitingFor(memory int64) int64 { return min(mostWaiting, memory/8) }

// flowsFor is how many visitors of all udp endpoints there is memory for: a sixteenth of it
// is for them. An endpoint may have as many as it may have in any case.
func flowsFor(memory int64, ofOne int) int {
	return int(max(min(memory/16/ofFlow, math.MaxInt32), int64(ofOne)))
}

// fitMachine bounds what the configuration leaves to the machine.
func (r *Relay) fitMachine() {
	memory := allowance.Memory()
	if l := &r.cfg.Limits; l.Connections == 0 {
		l.Connections = visitorsFor(memory, allowance.Files())
	}
	r.waiting = waitingFor(memory)
	r.flows = flowsFor(memory, r.cfg.Limits.UDPFlows)
}
