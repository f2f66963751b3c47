// Package budget bounds the memory for data that sessions have received and nobody has read yet:
// each session has a share of what all sessions of a process may hold.
package budget

import "sync/atomic"

// step is by how much a share grows and shrinks.
const step = 1 << 20

// Budget is what all sessions of a process may hold together, beyond what each
// holds freely. A nil Budget bounds nothing.
type Budget struct {
	limit   int64
	used    atomic.Int64
	givenUp atomic.Uint64
}

// New returns a budget of so many bytes.
func New(bytes int64) *Budget { return &Budget{limit: bytes} }

// Used is how many bytes are taken now.
func (b *Budget) Used() int64 { return b.used.Load() }

// GivenUp is how many streams were given up for what nobody read of them.
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

// Share is one session's part. Its methods are not for several goroutines.
type Share struct {
	Budget *Budget
	Free   int64 // bytes that need no budget
	Most   int64 // bytes it may hold in any case
	taken  int64
}

// Holds fits the share to n bytes, and reports whether they may be held. If
// not, Room bytes may.
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

// Left is how many more than n bytes could be held now.
func (s *Share) Left(n int64) int64 {
	most := s.Most
	if s.Budget != nil {
		most = min(most, s.Free+s.taken+s.Budget.limit-s.Budget.used.Load())
	}
	return max(0, most-n)
}

// Room is how many bytes may be held without more of the budget.
func (s *Share) Room() int64 { return min(s.Most, s.Free+s.taken) }

// GaveUp counts a stream that was given up, so that less is held.
func (s *Share) GaveUp() {
	if s.Budget != nil {
		s.Budget.givenUp.Add(1)
	}
}

// Close gives everything back. The share may hold nothing but Free then.
func (s *Share) Close() {
	s.Budget.give(s.taken)
	s.taken, s.Most = 0, min(s.Most, s.Free)
}
