package reliable

import "time"

// What is small is said twice where packets get lost, the second time an eighth
// of a round trip after the first unless it was acknowledged by then. A lost
// request or key stroke else waits for a probe or for the loss to show, a round
// trip and more: on a path that loses one packet in a hundred that is what one
// in fifty exchanges waits for. Nothing is repeated where nothing gets lost.
const (
	// smallWrite is how much of a stream may be under way at most, in bytes, for
	// what leaves to be small.
	smallWrite = 4 << 10
	// lossWindow is over how many packets the share of lost ones is taken. From a
	// share of lossy on small things are said twice: one loss is enough, and its
	// effect lasts for some 700 packets that arrive after it.
	lossWindow = 1024
	lossy      = 0.5 / lossWindow
	// repeatRate and repeatBurst bound what is said twice, in bytes a second and
	// at once.
	repeatRate  = 64 << 10
	repeatBurst = 16 << 10
)

// repeats is what a session may say twice.
type repeats struct {
	loss    float64  // the share of lost packets
	waiting []repeat // in the order of their times
	tokens  float64  // bytes
	at      time.Duration
	said    uint64 // bytes that were said twice
}

// repeat is a packet with something small.
type repeat struct {
	number uint64
	due    time.Duration
}

// arrived and lost keep the share of lost packets.
func (r *repeats) arrived() { r.loss -= r.loss / lossWindow }
func (r *repeats) lost()    { r.loss += 1.0 / lossWindow }

// late takes back a loss that turned out to be none.
func (r *repeats) late() { r.loss = max(0, r.loss-1.0/lossWindow) }

// wanted reports whether the path loses enough.
func (r *repeats) wanted() bool { return r.loss >= lossy }

// note lets the packet of that number be repeated.
func (r *repeats) note(number uint64, due time.Duration) {
	r.waiting = append(r.waiting, repeat{number, due})
}

// renumber follows packets from first on to their numbers.
func (r *repeats) renumber(first, shift uint64) {
	for i := len(r.waiting) - 1; i >= 0 && r.waiting[i].number >= first; i-- {
		r.waiting[i].number += shift
	}
}

// forget drops the first n.
func (r *repeats) forget(n int) {
	r.waiting = append(r.waiting[:0], r.waiting[n:]...)
	if len(r.waiting) == 0 && cap(r.waiting) > 16 {
		r.waiting = nil
	}
}

// afford reports whether size bytes may be said twice now, and counts them.
func (r *repeats) afford(now time.Duration, size int) bool {
	r.tokens = min(repeatBurst, r.tokens+repeatRate*(now-r.at).Seconds())
	r.at = now
	if r.tokens < float64(size) {
		return false
	}
	r.tokens -= float64(size)
	return true
}

// repeatAfter is how long after it left something small is said again: so soon
// that it is of use, and so late that what takes a whole burst of packets has
// mostly passed.
func (s *Session) repeatAfter() time.Duration {
	return min(max(s.rtt.smoothed/8, 2*granularity), 20*time.Millisecond)
}

// repeatAt is when something small is due to be said again, or zero.
func (s *Session) repeatAt() time.Duration {
	r := &s.repeats
	n := 0
	for n < len(r.waiting) && s.inFlightSmall(r.waiting[n].number) == nil {
		n++
	}
	if n > 0 {
		r.forget(n)
	}
	if len(r.waiting) == 0 {
		return 0
	}
	return r.waiting[0].due
}

// inFlightSmall is the packet of that number if nobody knows what became of it
// and something small is in it.
func (s *Session) inFlightSmall(number uint64) *sentPacket {
	if number < s.sent.base || number >= s.sent.next {
		return nil
	}
	if p := s.sent.at(number); p.state == packetInFlight && p.small > 0 {
		return p
	}
	return nil
}

// repeatSmall queues what is due to be said again.
func (s *Session) repeatSmall(now time.Duration) {
	r := &s.repeats
	n := 0
	for ; n < len(r.waiting) && r.waiting[n].due <= now; n++ {
		p := s.inFlightSmall(r.waiting[n].number)
		if p == nil || !r.afford(now, int(p.small)) {
			continue
		}
		r.said += uint64(p.small)
		p.small = 0
		p.each(func(f *sentFrame) {
			if f.small {
				s.onFrameLost(f)
			}
		})
	}
	r.forget(n)
}
