package reliable

import "time"

// On a path that loses packets, small data is sent twice, the second time an eighth of a round trip
// after the first unless it was acknowledged by then. Otherwise a lost request or key stroke waits
// for a probe or for the loss to be detected, which takes a round trip and more; on a path that
// loses one packet in a hundred, that happens to one in fifty exchanges. If nothing gets lost,
// nothing is repeated.
const (
	// smallWrite is how much of a stream may be in flight, in bytes, for its data to count as
	// small.
	smallWrite = 4 << 10
	// lossWindow is the number of packets over which the share of lost ones is measured. If that
	// share is at least lossy, small data is sent twice: one loss is enough, and its effect lasts
	// for about 700 packets that arrive after it.
	lossWindow = 1024
	lossy      = 0.5 / lossWindow
	// repeatRate and repeatBurst limit what is sent twice, in bytes per second and at once.
	repeatRate  = 64 << 10
	repeatBurst = 16 << 10
)

// repeats is what a session may send twice.
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

// arrived and lost track the share of lost packets.
func (r *repeats) arrived() { r.loss -= r.loss / lossWindow }
func (r *repeats) lost()    { r.loss += 1.0 / lossWindow }

// late takes back a loss that turned out not to be one.
func (r *repeats) late() { r.loss = max(0, r.loss-1.0/lossWindow) }

// wanted reports whether the path loses enough packets.
func (r *repeats) wanted() bool { return r.loss >= lossy }

// note marks the packet with that number for repetition.
func (r *repeats) note(number uint64, due time.Duration) {
	r.waiting = append(r.waiting, repeat{number, due})
}

// renumber updates the numbers of packets from first onwards.
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

// afford reports whether size bytes may be sent twice now, and counts them.
func (r *repeats) afford(now time.Duration, size int) bool {
	r.tokens = min(repeatBurst, r.tokens+repeatRate*(now-r.at).Seconds())
	r.at = now
	if r.tokens < float64(size) {
		return false
	}
	r.tokens -= float64(size)
	return true
}

// repeatAfter is how long after it was sent small data is sent again: soon enough to be useful, and
// late enough that a loss of a whole burst of packets has mostly passed.
func (s *Session) repeatAfter() time.Duration {
	return min(max(s.rtt.smoothed/8, 2*granularity), 20*time.Millisecond)
}

// repeatAt returns when small data is due to be sent again, or zero.
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

// inFlightSmall returns the packet with that number if its fate is unknown and it contains
// something small.
func (s *Session) inFlightSmall(number uint64) *sentPacket {
	if number < s.sent.base || number >= s.sent.next {
		return nil
	}
	if p := s.sent.at(number); p.state == packetInFlight && p.small > 0 {
		return p
	}
	return nil
}

// repeatSmall queues what is due to be sent again.
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
