// Package budget bounds the memory for data that sessions have received and nobody has read yet:
// each session has a share of what all sessions of a process may hold.
package budget

import "sync/atomic"

// step is the unit by which a share grows and shrinks.
const step = 1 << 20

// Budget is what all sessions of a process may hold together, in addition to what each may hold
// freely. A nil Budget sets no bound.
type Budget struct {
	limit   int64
	used    atomic.Int64
	givenUp atomic.Uint64
}

// New returns a budget of the given number of bytes.
func New(bytes int64) *Budget { return &Budget{limit: bytes} }

// Used returns how many bytes are taken now.
func (b *Budget) Used() int64 { return b.used.Load() }

// GivenUp returns how many streams were given up because of what nobody read of them.
func (b *Budget) GivenUp() uint64 { return b.givenUp.Load() }

func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *Budget) give(n int64) {
	if b != nil {
		b.used.Add(-n)
	}
}

// Share is one session's part of a Budget. Its methods must not be called concurrently.
type Share struct {
	Budget *Budget
	Free   int64 // bytes that need no budget
	Most   int64 // bytes it may hold in any case
	taken  int64
}

// Holds adjusts the share to n bytes, and reports whether they may be held. If not, only Room bytes
// may.
func (s *Share) Holds(n int64) bool {
	if n > s.Most {
		return false
	}
	need := (max(0, n-s.Free) + step - 1) / step * step
	if need > s.taken {
		if !s.Budget.take(need - s.taken) {
			return false
		}
		s.taken = need
	} else if need+step < s.taken { // a step is kept: what is held goes up and down
		s.Budget.give(s.taken - need - step)
		s.taken = need + step
	}
	return true
}

// Left returns how many bytes beyond n could be held now.
func (s *Share) Left(n int64) int64 {
	most := s.Most
	if s.Budget != nil {
		most = min(most, s.Free+s.taken+s.Budget.limit-s.Budget.used.Load())
	}
	return max(0, most-n)
}

// Room returns how many bytes may be held without taking more from the budget.
func (s *Share) Room() int64 { return min(s.Most, s.Free+s.taken) }

// GaveUp counts a stream that was given up to free memory.
func (s *Share) GaveUp() {
	if s.Budget != nil {
		s.Budget.givenUp.Add(1)
	}
}

// Close gives everything back. After that, the share may hold only Free.
func (s *Share) Close() {
	s.Budget.give(s.taken)
	s.taken, s.Most = 0, min(s.Most, s.Free)
}
