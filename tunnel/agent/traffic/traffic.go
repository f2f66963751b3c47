// Package traffic counts visitors and bytes: of one tunnel, of one visit, or of the whole agent.
package traffic

import "sync/atomic"

// Connections counts visitors' connections (tcp, tls), streams (http, https) or
// flows (udp).
type Connections struct {
	Open  int64 `json:"open"`
	Total int64 `json:"total"`
}

// Bytes counts payload: In from visitors to the origin, Out back.
type Bytes struct {
	In  int64 `json:"in"`
	Out int64 `json:"out"`
}

// Counters count. They are for several goroutines at once, and used by pointer.
type Counters struct{ open, total, in, out atomic.Int64 }

// Enter counts one who came.
func (c *Counters) Enter() {
	c.open.Add(1)
	c.total.Add(1)
}

// TryEnter is Enter unless as many as most are there. It reports whether it was.
func (c *Counters) TryEnter(most int64) bool {
	if c.open.Add(1) > most {
		c.open.Add(-1)
		return false
	}
	c.total.Add(1)
	return true
}

// Leave counts one who went.
func (c *Counters) Leave() { c.open.Add(-1) }

// In counts n bytes from a visitor.
func (c *Counters) In(n int) { c.in.Add(int64(n)) }

// Out counts n bytes to a visitor.
func (c *Counters) Out(n int) { c.out.Add(int64(n)) }

// Connections returns who came and who is there.
func (c *Counters) Connections() Connections {
	return Connections{Open: c.open.Load(), Total: c.total.Load()}
}

// Bytes returns what passed.
func (c *Counters) Bytes() Bytes { return Bytes{In: c.in.Load(), Out: c.out.Load()} }
