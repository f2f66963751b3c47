package inspect

import (
	"sync/atomic"
	"time"

	"adit/internal/monotime"
)

// keptPerSecond is how many bytes of bodies beyond smallBody are copied in a
// second once as many as the memory holds were. Nobody can look at more, and
// copying all of a bulk transfer would slow it.
const keptPerSecond = 16 << 20

// pace is a bucket of bytes. Its methods may be called from several goroutines.
type pace struct {
	burst int64
	left  atomic.Int64
	at    atomic.Int64 // when it was filled, by monotime.Now
}

func (p *pace) begin(burst int64) {
	p.burst = max(burst, keptPerSecond)
	p.left.Store(p.burst)
	p.at.Store(int64(monotime.Now()))
}

// take reports whether n more bytes may be copied.
func (p *pace) take(n int) bool {
	if p.left.Load() < int64(n) {
		p.fill()
	}
	if p.left.Add(int64(-n)) >= 0 {
		return true
	}
	p.left.Add(int64(n))
	return false
}

// charge notes n more bytes that were worked on whatever is left; below zero it
// gives back.
func (p *pace) charge(n int) { p.left.Add(int64(-n)) }

// fill adds what the time since it was last called allows.
func (p *pace) fill() {
	now, at := int64(monotime.Now()), p.at.Load()
	gained := time.Duration(now-at).Seconds() * keptPerSecond
	if gained < blockSize || !p.at.CompareAndSwap(at, now) {
		return
	}
	if room := p.burst - p.left.Load(); room > 0 {
		p.left.Add(int64(min(gained, float64(room))))
	}
}
