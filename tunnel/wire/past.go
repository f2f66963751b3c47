package wire

import "slices"

// maxPast is how many flows are remembered that have ended.
const maxPast = 4096

// Past are the flows of a session that the relay has ended last, by whatever tells them
// apart. A packet of theirs may have been on its way then, and is no beginning: numbers are
// not used again. The zero value has none. It is of one goroutine.
type Past[K comparable] struct {
	keys []K
	next int // which of them the next takes the place of, once there are as many as may be
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

// Has reports whether a flow is among them.
func (p *Past[K]) Has(key K) bool { return slices.Contains(p.keys, key) }
