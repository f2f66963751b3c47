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

// What an origin has sent by HTTP/2 and a visitor has not taken waits in the memory
// of net/http's transport, up to AnswerWindow for each answer, which the memory of
// sessions does not know of. It has the same bounds: beyond them those answers are
// given up that have waited for their visitors longest.
const (
	AnswerWindow  = 512 << 10
	OfAgent       = 64 << 20 // is what may wait of one agent, at most
	DefaultMemory = 1 << 30  // where there is as much memory
	// SlowVisitor is how long a visitor may take for one piece of an answer, and an
	// origin for one of a request, where the agent has too much unread, and
	// slowOfAll where all together have.
	SlowVisitor = 30 * time.Second
	slowOfAll   = time.Second
)

// room is how many bytes may wait.
type room struct{ ofAgent, ofAll int64 }

// roomOf gives each agent a share of memory that others can spare.
func roomOf(memory int64) room { return room{ofAgent: min(OfAgent, memory/4), ofAll: memory} }

// Backlog is what waits for visitors, and for origins, within the bounds of each.
type Backlog struct {
	unread  unread
	untaken untaken
}

// New returns a backlog that may hold memory bytes of either.
func New(memory int64) *Backlog {
	room := roomOf(memory)
	return &Backlog{unread: unread{room: room}, untaken: untaken{room: room}}
}

// Relieve gives up so many visits that the rest is within its bounds. It is to be
// called every second or so.
func (b *Backlog) Relieve(now time.Duration) {
	b.unread.relieve(now)
	b.untaken.relieve(now)
}

// GivenUp is how many visits were ended because too much of their answers was
// unread, or of their requests.
func (b *Backlog) GivenUp() uint64 { return b.unread.givenUp.Load() + b.untaken.givenUp.Load() }

// Len is how many answers and requests are followed.
func (b *Backlog) Len() int {
	b.unread.mu.Lock()
	defer b.unread.mu.Unlock()
	b.untaken.mu.Lock()
	defer b.untaken.mu.Unlock()
	return len(b.unread.all) + len(b.untaken.all)
}

// waiting is what one visit may hold in memory, and since when nobody takes of it.
type waiting struct {
	away   time.Duration
	agent  any // whose origin it is; nil: none was picked yet
	size   int64
	giveUp func()
}

// relieve gives up those that have waited longest until the rest has room, and returns
// how many.
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
