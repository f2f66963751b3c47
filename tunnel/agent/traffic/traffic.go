// Package traffic counts visitors and bytes: of one tunnel, of one visit, or of the whole agent.
package traffic

import "sync/atomic"

// Connections counts visitors' connections (tcp, tls), streams (http, https) or
// flows (udp).
type Connections struct {
	Open  int64 `json:"open"`
	Total int64 `json:"total"`
}

// Bytes counts payload: In from visitors to the origin, Out in the other direction.
type Bytes struct {
	In  int64 `json:"in"`
	Out int64 `json:"out"`
}

// Counters counts visitors and bytes. It is safe for concurrent use, and must be used by pointer.
type Counters struct{ open, total, in, out atomic.Int64 }

// Enter counts a visitor who comes.
func (c *Counters) Enter() {
	c.open.Add(1)
	c.total.Add(1)
}

// TryEnter is like Enter, but does nothing if most visitors are there already. It reports whether
// the visitor was counted.
func (c *Counters) TryEnter(most int64) bool {
	if c.open.Add(1) > most {
		c.open.Add(-1)
		return false
	}
	c.total.Add(1)
	return true
}

// Leave counts a visitor who goes.
func (c *Counters) Leave() { c.open.Add(-1) }

// In counts n bytes from a visitor.
func (c *Counters) In(n int) { c.in.Add(int64(n)) }

// Out counts n bytes to a visitor.
func (c *Counters) Out(n int) { c.out.Add(int64(n)) }

// Connections returns how many visitors have come and how many are there now.
func (c *Counters) Connections() Connections {
	return Connections{Open: c.open.Load(), Total: c.total.Load()}
}

// Bytes returns how many bytes have passed.
func (c *Counters) Bytes() Bytes { return Bytes{In: c.in.Load(), Out: c.out.Load()} }
