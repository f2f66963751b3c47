package agent

import (
	"math/rand/v2"
	"time"
)

// Times of the back-off. For the time urgent after a session is lost, the ceiling stays at
// firstCeiling, so that an agent reconnects within a second of a relay's restart. Then it doubles
// up to eagerCeiling and, once eager has passed since the loss, up to maxCeiling.
const (
	firstCeiling = 600 * time.Millisecond
	urgent       = 20 * time.Second
	eagerCeiling = 4 * time.Second
	eager        = 2 * time.Minute
	maxCeiling   = time.Minute
)

// backoff is exponential with full jitter.
type backoff struct {
	ceiling time.Duration
	since   time.Time // of the loss
	failed  int
}

func (b *backoff) reset() { *b = backoff{} }

// next returns how long to wait after another failure.
func (b *backoff) next() time.Duration {
	if b.failed++; b.since.IsZero() {
		b.since = time.Now()
	}
	switch ago := time.Since(b.since); {
	case ago < urgent:
		b.ceiling = firstCeiling
	case ago < eager:
		b.ceiling = min(2*b.ceiling, eagerCeiling)
	default:
		b.ceiling = min(2*b.ceiling, maxCeiling)
	}
	return 50*time.Millisecond + rand.N(b.ceiling)
}

// A relay may announce a new address at any time, and each is written to the disk: a few times at
// once, and then no more than once per pace.
const (
	moveBurst = 8
	movePace  = time.Minute
)

// moves limits how often the relay's addresses are written.
type moves struct {
	full    time.Time // when moveBurst writes may be made at once again
	pending bool      // the addresses in force are not written yet
}

// wait returns how long the next write has to wait.
func (m *moves) wait(now time.Time) time.Duration {
	return max(0, m.full.Add(-(moveBurst-1)*movePace).Sub(now))
}

// take counts a write that is about to be made.
func (m *moves) take(now time.Time) {
	if m.full.Before(now) {
		m.full = now
	}
	m.full, m.pending = m.full.Add(movePace), false
}
