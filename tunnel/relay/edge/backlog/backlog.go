// Package backlog bounds the memory that HTTP/2 and HTTP/3 take for buffered data: answers
// that visitors do not read, and requests that origins do not read. When there is too much, it
// gives up visits, starting with those that have waited longest. It wraps readers and knows
// nothing of visitors or agents.
package backlog

import (
	"cmp"
	"slices"
	"time"
)

// What an origin has sent by HTTP/2 and a visitor has not read stays in the memory of
// net/http's transport, up to AnswerWindow per answer, outside the limit on the memory of
// sessions. It is subject to the same bounds: beyond them, the answers that have waited
// longest for their visitors are given up.
const (
	AnswerWindow  = 512 << 10
	OfAgent       = 64 << 20 // limit for one agent
	DefaultMemory = 1 << 30  // if the machine has as much memory
	// SlowVisitor is how long a visitor may take for one piece of an answer, or an origin for
	// one piece of a request, while its agent is over its limit. slowOfAll applies while all
	// agents together are over theirs.
	SlowVisitor = 30 * time.Second
	slowOfAll   = time.Second
)

// room is how many bytes may wait, for one agent and for all.
type room struct{ ofAgent, ofAll int64 }

// roomOf returns the limits for a total of memory bytes. The limit for each agent leaves room
// for others.
func roomOf(memory int64) room { return room{ofAgent: min(OfAgent, memory/4), ofAll: memory} }

// Backlog limits the data that waits for visitors and, separately, for origins.
type Backlog struct {
	unread  unread
	untaken untaken
}

// New returns a backlog that may hold memory bytes of each.
func New(memory int64) *Backlog {
	room := roomOf(memory)
	return &Backlog{unread: unread{room: room}, untaken: untaken{room: room}}
}

// Relieve gives up visits until the rest are within the limits. It should be called about once
// a second.
func (b *Backlog) Relieve(now time.Duration) {
	b.unread.relieve(now)
	b.untaken.relieve(now)
}

// GivenUp returns how many visits were ended because too much of their answers or requests was
// left unread.
func (b *Backlog) GivenUp() uint64 { return b.unread.givenUp.Load() + b.untaken.givenUp.Load() }

// Len returns how many answers and requests are being tracked.
func (b *Backlog) Len() int {
	b.unread.mu.Lock()
	defer b.unread.mu.Unlock()
	b.untaken.mu.Lock()
	defer b.untaken.mu.Unlock()
	return len(b.unread.all) + len(b.untaken.all)
}

// waiting is how much memory one visit may hold, and since when nobody has been reading it.
type waiting struct {
	away   time.Duration
	agent  any // of the origin; nil: none was chosen yet
	size   int64
	giveUp func()
}

// relieve gives up those that have waited longest until the rest fit, and returns how many it
// gave up.
func (r room) relieve(list []waiting, now time.Duration) (givenUp uint64) {
	slices.SortFunc(list, func(a, b waiting) int { return cmp.Compare(a.away, b.away) })
	all, ofAgent := int64(0), make(map[any]int64)
	for _, w := range list {
		all += w.size
		ofAgent[w.agent] += w.size
	}
	for _, w := range list {
		waited := now - w.away
		tooMuch := all > r.ofAll && waited >= slowOfAll ||
			w.agent != nil && ofAgent[w.agent] > r.ofAgent && waited >= SlowVisitor
		if tooMuch && w.size > 0 {
			all -= w.size
			ofAgent[w.agent] -= w.size
			givenUp++
			w.giveUp()
		}
	}
	return givenUp
}
