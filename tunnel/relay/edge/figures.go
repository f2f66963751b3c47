package edge

// Figures describe all visitors since the start.
type Figures struct {
	Connections       int    // TCP connections open now
	TurnedAway        uint64 // connections and requests over a limit, or with a bad PROXY header
	Spared            uint64 // idle connections that were closed to make room for others
	Unknown           uint64 // requests for a name that no endpoint serves
	BytesIn, BytesOut int64  // payload
	OverBandwidth     uint64 // packets to and from udp visitors that were dropped for lack of bandwidth
	Unproved          uint64 // packets dropped because the visitor's address may be forged and has had its amplification
}

// Figures returns a snapshot.
func (e *Edge) Figures() Figures {
	admitted := e.admission.Figures()
	f := Figures{Connections: admitted.Open, TurnedAway: admitted.TurnedAway, Spared: admitted.Spared, Unknown: e.unknown.Load()}
	f.OverBandwidth, f.Unproved = e.udp.Dropped()
	f.BytesIn, f.BytesOut = e.table.Bytes()
	return f
}

// Visitors returns the number of requests, connections and flows in progress, by the type of
// their endpoint, including endpoints that have since been given back.
func (e *Edge) Visitors() map[string]int64 {
	open := make(map[string]int64)
	for _, ep := range e.table.All() {
		open[ep.Type] += ep.Counters().Open
	}
	return open
}

// GivenUp returns how many visits were ended because too much of their answers or requests was
// left unread.
func (e *Edge) GivenUp() uint64 { return e.backlog.GivenUp() }
