// Package crowd allots a limited number of places to callers that have not identified themselves
// yet and may arrive in any number from many addresses. If all places are taken, a newcomer gets
// the place of the caller that has waited longest in the most crowded block, provided that block
// holds more than the newcomer's own, or that the wait was longer than identifying oneself takes.
// Callers that merely occupy places lose them, and a crowd that returns all at once, each from a
// different block, is served in turn rather than cut off early.
package crowd

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"adit/internal/monotime"
)

// Crowd is a limited number of places. Set its exported fields before use.
type Crowd struct {
	PerBlock int           // places of one block, at most
	Most     int           // places together, at most; if zero, any number
	Grace    time.Duration // how long one may hold a place that others of as small a block want

	mu     sync.Mutex
	blocks map[netip.Prefix][]*place // oldest first
	all    int
	next   uint64
	cut    uint64
}

type place struct {
	from  netip.Prefix
	turn  uint64
	since time.Duration // by monotime
	cut   func()
	gone  bool // has left, or lost its place
}

// Enter takes a place for a caller from a block. cut is called if the place goes to another caller:
// at most once, from another goroutine's Enter, so it must not block. The first call of leave gives
// the place back. leave is never nil; ok reports whether there was a place.
func (c *Crowd) Enter(from netip.Prefix, cut func()) (leave func(), ok bool) {
	p := &place{from: from, cut: cut}
	victim, ok := c.enter(p)
	if victim != nil {
		victim.cut()
	}
	if !ok {
		return func() {}, false
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.leave(p)
	}, true
}

func (c *Crowd) enter(p *place) (victim *place, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.blocks[p.from]) >= c.PerBlock {
		return nil, false
	}
	if c.Most > 0 && c.all >= c.Most {
		if victim = c.longest(len(c.blocks[p.from])); victim == nil {
			return nil, false
		}
		c.leave(victim)
		c.cut++
	}
	if c.blocks == nil {
		c.blocks = make(map[netip.Prefix][]*place)
	}
	c.next++
	p.turn, p.since = c.next, monotime.Now()
	c.blocks[p.from] = append(c.blocks[p.from], p)
	c.all++
	return victim, true
}

// longest is who has waited longest in the most crowded block, or of those of as
// many; nil if it is to keep its place from one of whose block there are mine.
func (c *Crowd) longest(mine int) *place {
	var found *place
	most := 0
	for _, list := range c.blocks {
		if len(list) > most || len(list) == most && list[0].turn < found.turn {
			found, most = list[0], len(list)
		}
	}
	if found == nil || most <= mine+1 && monotime.Now()-found.since < c.Grace {
		return nil
	}
	return found
}

// leave takes a place out, if it is there yet; mu is held.
func (c *Crowd) leave(p *place) {
	if p.gone {
		return
	}
	p.gone = true
	list := c.blocks[p.from]
	if i := slices.Index(list, p); i >= 0 {
		list = slices.Delete(list, i, i+1)
	}
	if c.all--; len(list) == 0 {
		delete(c.blocks, p.from)
		return
	}
	c.blocks[p.from] = list
}

// Len returns how many places are taken.
func (c *Crowd) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all
}

// Cut returns how many callers have lost their places to others.
func (c *Crowd) Cut() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}
