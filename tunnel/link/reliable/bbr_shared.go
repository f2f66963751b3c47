package reliable

import "time"

// bbrShared is what bbr does beside flows that fill the buffer, such as TCP
// with CUBIC. While a queue stands that no drain of its own takes away, someone
// else keeps it, and then a loss most likely is the buffer's: the bytes in
// flight are bounded by CUBIC's window (RFC 9438) from there on. Nothing is
// wasted by giving way, since the queue feeds the link. A path without a
// standing queue never gets here, however much it loses.
type bbrShared struct {
	calmAt time.Duration // when a round trip last showed no queue
	busyAt time.Duration // when a whole round last showed one
	cutAt  time.Duration // losses of packets sent before are one event
	bound  *cubic        // nil: no bound
}

const (
	// bbrStanding is for how many round trips a queue must stand: longer than a
	// cycle with its drain.
	bbrStanding = 10
	// bbrCalm is how long the path must show no queue before the bound goes.
	bbrCalm = 2 * time.Second
)

// threshold is the round trip above which there is a queue.
func (b *bbr) threshold() time.Duration {
	return b.minRTT + max(b.minRTT/10, min(2*time.Millisecond, 2*b.minRTT))
}

// standing reports whether a queue stands that is not this flow's alone.
func (b *bbr) standing(now time.Duration) bool {
	return b.full && now-b.shared.calmAt > bbrStanding*b.minRTT
}

// share follows the queue, and gives way to losses while it stands.
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

// sharedWindow is the bound on the bytes in flight; zero means none.
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
