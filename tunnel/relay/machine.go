package relay

import (
	"math"

	"adit/internal/allowance"
)

// Limits that the configuration leaves open depend on the machine. A limit that suits a
// large machine does not protect a small one: a stranger could make it run out of memory,
// or of the files that agents and the store need.
const (
	ofVisitor   = 128 << 10 // bytes: a connection with the largest allowed request head
	leastGuests = 64
	mostWaiting = 1 << 30
	ofFlow      = 1 << 10 // bytes: one visitor of a udp endpoint
)

// visitorsFor returns how many visitors' connections there is memory and files for. They
// get half of the memory, and a quarter of the files is reserved for everything else.
func visitorsFor(memory int64, files int) int {
	return int(max(min(memory/2/ofVisitor, int64(files/4*3), math.MaxInt32), leastGuests))
}

// waitingFor returns how many bytes may wait for readers in each of three places: in
// sessions, for visitors over HTTP/2, and for origins.
func waitingFor(memory int64) int64 { return min(mostWaiting, memory/8) }

// flowsFor returns how many visitors of all udp endpoints there is memory for. They get a
// sixteenth of it, but there are always enough for the limit of one endpoint.
func flowsFor(memory int64, ofOne int) int {
	return int(max(min(memory/16/ofFlow, math.MaxInt32), int64(ofOne)))
}

// fitMachine sets the limits that the configuration leaves to the machine.
func (r *Relay) fitMachine() {
	memory := allowance.Memory()
	if l := &r.cfg.Limits; l.Connections == 0 {
		l.Connections = visitorsFor(memory, allowance.Files())
	}
	r.waiting = waitingFor(memory)
	r.flows = flowsFor(memory, r.cfg.Limits.UDPFlows)
}
