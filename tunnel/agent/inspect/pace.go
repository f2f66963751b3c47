package inspect

import (
	"sync/atomic"
	"time"

	"adit/internal/monotime"
)

// keptPerSecond is how many bytes of bodies beyond smallBody are copied per second once as many
// bytes as the memory holds have been copied. Nobody can look at more, and copying all of a bulk
// transfer would slow it down.
const keptPerSecond = 16 << 20

// pace is a token bucket of bytes. Its methods may be called concurrently.
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

// charge records n more bytes that were processed regardless of what is left; a negative n gives
// bytes back.
func (p *pace) charge(n int) { p.left.Add(int64(-n)) }

// fill adds the allowance for the time since the last call.
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
