package wire

import "slices"

// maxPast is how many ended flows are remembered.
const maxPast = 4096

// Past remembers the flows of a session that the relay ended most recently, by a key that
// identifies them. A packet of such a flow may still have been in transit when it ended. Since
// flow numbers are not reused, that packet does not begin a new flow. The zero value is empty.
// It is not safe for concurrent use.
type Past[K comparable] struct {
	keys []K
	next int // index of the oldest key, to be overwritten next once keys is full
}

// Add adds a flow that has ended.
func (p *Past[K]) Add(key K) {
	if len(p.keys) < maxPast {
		p.keys = append(p.keys, key)
		return
	}
	p.keys[p.next] = key
	p.next = (p.next + 1) % len(p.keys)
}

// Has reports whether a flow is remembered.
func (p *Past[K]) Has(key K) bool { return slices.Contains(p.keys, key) }
