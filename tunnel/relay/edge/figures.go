package edge

// Figures are of all visitors since the start.
type Figures struct {
	Connections       int    // TCP connections open now
	TurnedAway        uint64 // connections and requests over a limit, or with a bad PROXY header
	Spared            uint64 // connections that asked for nothing and made room for others
	Unknown           uint64 // requests for a name that no endpoint serves
	BytesIn, BytesOut int64  // payload
	OverBandwidth     uint64 // packets of udp visitors, both ways, that a bandwidth had no room for
	Unproved          uint64 // packets to udp visitors that may be forged, beyond the allowed amplification
}

// Figures returns a snapshot.
func (e *Edge) Figures() Figures {
	admitted := e.admission.Figures()
	f := Figures{Connections: admitted.Open, TurnedAway: admitted.TurnedAway, Spared: admitted.Spared, Unknown: e.unknown.Load()}
	f.OverBandwidth, f.Unproved = e.udp.Dropped()
	f.BytesIn, f.BytesOut = e.table.Bytes()
	return f
}

// Visitors counts the requests, connections and flows under way by the type of
// their endpoint, also of those that were given back meanwhile.
func (e *Edge) Visitors() map[string]int64 {
	open := make(map[string]int64)
	for _, ep := range e.table.All() {
		open[ep.Type] += ep.Counters().Open
	}
	return open
}

// GivenUp is how many visits were ended because too much of their answers was
// unread, or of their requests.
func (e *Edge) GivenUp() uint64 { return e.backlog.GivenUp() }
