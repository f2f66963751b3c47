package reliable

import "time"

// bbrShared is how bbr behaves next to flows that fill the buffer, such as TCP with CUBIC. If a
// queue persists although this flow drains its own, somebody else maintains it, and a loss is then
// most likely caused by a full buffer: from there on, the bytes in flight are limited by CUBIC's
// window (RFC 9438). Giving way wastes nothing, because the queue feeds the link. A path without a
// standing queue never gets here, however much it loses.
type bbrShared struct {
	calmAt time.Duration // when a round trip last showed no queue
	busyAt time.Duration // when a whole round last showed one
	cutAt  time.Duration // losses of packets sent before are one event
	bound  *cubic        // nil: no bound
}

const (
	// bbrStanding is for how many round trips a queue must stand: longer than a cycle with its
	// drain.
	bbrStanding = 10
	// bbrCalm is how long the path must show no queue before the limit is lifted.
	bbrCalm = 2 * time.Second
)

// threshold is the round-trip time above which there is a queue.
func (b *bbr) threshold() time.Duration {
	return b.minRTT + max(b.minRTT/10, min(2*time.Millisecond, 2*b.minRTT))
}

// standing reports whether there is a standing queue that is not this flow's alone.
func (b *bbr) standing(now time.Duration) bool {
	return b.full && now-b.shared.calmAt > bbrStanding*b.minRTT
}

// share tracks the queue, and gives way on losses while it stands.
func (b *bbr) share(f *feedback) {
	s := &b.shared
	if f.rtt > 0 && (f.rtt <= b.threshold() || b.state == bbrStartup || b.state == bbrDrain) {
		s.calmAt = f.now
	}
	if b.roundStart && b.lastRoundMin > b.threshold() {
		s.busyAt = f.now
	}
	if f.lost > 0 && f.lostSent > s.cutAt && b.standing(f.now) {
		if s.bound == nil {
			s.bound = newCubic(b.datagram)
			s.bound.cwnd = float64(f.prior)
		}
		s.bound.cwnd = min(s.bound.cwnd, float64(max(f.prior, b.minWindow())))
		s.bound.srtt = f.srtt
		s.bound.reduce(f.now)
		s.cutAt = f.now
		return
	}
	if s.bound == nil {
		return
	}
	s.bound.srtt = f.srtt
	if f.acked > 0 && f.limited {
		s.bound.avoid(f)
	}
	if f.now-s.busyAt > bbrCalm || int(s.bound.cwnd) > b.bdp(bbrWindowGain)+b.slack() {
		s.bound = nil
	}
}

// sharedWindow is the limit on the bytes in flight; zero means none.
func (b *bbr) sharedWindow(now time.Duration) int {
	s := &b.shared
	if s.bound == nil {
		return 0
	}
	w := int(s.bound.cwnd)
	if now-s.calmAt < b.minRTT { // no queue: the path must not run dry
		w = max(w, b.bdp(1)+b.slack())
	}
	return w
}
