package reliable

import "time"

// What a sent frame was, for when its packet is acknowledged or lost.
const (
	sentStream = iota + 1
	sentMaxData
	sentMaxStreams
	sentMaxStreamData
	sentReset
	sentStop
	sentKeepAlive
)

type sentFrame struct {
	stream *Stream
	offset uint64
	length uint32
	kind   uint8
	fin    bool
	small  bool // may be said twice
}

type packetState uint8

const (
	packetAbsent packetState = iota // never tracked, or done with
	packetInFlight
	packetLost // declared lost; kept a while to notice that it was only late
)

type sentPacket struct {
	sent        time.Duration
	delivered   uint64
	deliveredAt time.Duration
	firstSent   time.Duration
	ackLargest  uint64 // one above the largest number that the packet acknowledged
	size        int32
	state       packetState
	appLimited  bool
	probe       bool // of the path's MTU
	n           uint8
	small       int32  // bytes of small frames that have not been repeated, and a few
	skip        uint32 // if absent, that so many before it are too, as far as is known
	frames      [2]sentFrame
	more        []sentFrame
}

func (p *sentPacket) add(f sentFrame) {
	if int(p.n) < len(p.frames) {
		p.frames[p.n] = f
		p.n++
		return
	}
	p.more = append(p.more, f)
}

// each calls do with every frame.
func (p *sentPacket) each(do func(*sentFrame)) {
	for i := range p.n {
		do(&p.frames[i])
	}
	for i := range p.more {
		do(&p.more[i])
	}
}

// clear marks the entry as absent and drops what it points to.
func (p *sentPacket) clear() {
	p.state, p.n, p.ackLargest, p.probe, p.small, p.skip = packetAbsent, 0, 0, false, 0, 0
	p.frames = [2]sentFrame{}
	if len(p.more) > 0 {
		clear(p.more)
		p.more = p.more[:0]
	}
}

// maxTracked is how many packets may be in flight.
const maxTracked = 1 << 16

// sentLog is a ring of the packets sent, by their number.
type sentLog struct {
	entries    []sentPacket // a power of two
	base, next uint64       // numbers below base are done with
	judged     uint64       // of those below none is in flight
}

func (l *sentLog) at(number uint64) *sentPacket {
	return &l.entries[number&uint64(len(l.entries)-1)]
}

// reserve makes room for n more packets starting at number, and reports whether there is any. To
// make room it forgets lost packets: nothing else may ever arrive that would free them.
func (l *sentLog) reserve(number uint64, n int) bool {
	if l.room(number, n) {
		return true
	}
	for l.base < l.next && l.at(l.base).state != packetInFlight {
		l.at(l.base).clear()
		l.base++
	}
	return l.room(number, n)
}

func (l *sentLog) room(number uint64, n int) bool {
	if l.base == l.next {
		l.base, l.next = number, number
	}
	for l.next < number { // numbers that the carrier gave to its own packets
		l.advance()
		if l.next-l.base >= uint64(len(l.entries)) && !l.grow() {
			return false
		}
		l.at(l.next).clear()
		l.next++
	}
	for l.next+uint64(n)-l.base > uint64(len(l.entries)) {
		if !l.grow() {
			return false
		}
	}
	return true
}

func (l *sentLog) grow() bool {
	size := max(16, 2*len(l.entries))
	if size > maxTracked {
		return false
	}
	bigger := make([]sentPacket, size)
	for n := l.base; n < l.next; n++ {
		bigger[n&uint64(size-1)] = *l.at(n)
	}
	l.entries = bigger
	return true
}

// absentFrom returns the first number of the run of absent ones that ends before n.
// Acknowledgements repeat themselves, so each number of a run stores how far the run extends, as
// far as an earlier call has followed it, and the run is skipped in one step.
func (l *sentLog) absentFrom(n uint64) uint64 {
	lo := n
	for lo > l.base && l.at(lo-1).state == packetAbsent {
		lo -= min(lo-l.base, 1+uint64(l.at(lo-1).skip))
	}
	for n > lo {
		p := l.at(n - 1)
		next := n - min(n-lo, 1+uint64(p.skip))
		p.skip = uint32(n - lo - 1)
		n = next
	}
	return lo
}

// rest releases the memory of a log that has grown and is empty.
func (l *sentLog) rest() {
	l.advance()
	if l.base == l.next && len(l.entries) > 64 {
		l.entries = nil
	}
}

// displace makes room for one packet with that number in a log that is full of packets in flight:
// the oldest counts as lost.
func (s *Session) displace(number uint64) {
	for l := &s.sent; !l.room(number, 1); l.base++ {
		p := l.at(l.base)
		if p.state == packetInFlight {
			s.declareLost(p)
		}
		p.clear()
	}
}

// forget gives up noticing that packets sent before then and declared lost were only late.
func (l *sentLog) forget(before time.Duration) {
	for ; l.base < l.next; l.base++ {
		p := l.at(l.base)
		if p.state == packetInFlight || p.state == packetLost && p.sent >= before {
			return
		}
		p.clear()
	}
}

// unjudged returns the first number that may still be in flight.
func (l *sentLog) unjudged() uint64 { return max(l.base, l.judged) }

// advance moves base past finished packets.
func (l *sentLog) advance() {
	for l.base < l.next && l.at(l.base).state == packetAbsent {
		l.base++
	}
}

const (
	initialRTT      = 100 * time.Millisecond
	maxAckDelay     = 10 * time.Millisecond
	granularity     = time.Millisecond
	packetThreshold = 3
)

// rtt is the round-trip time: RFC 9002 §5.
type rtt struct {
	smoothed, variance, latest, min time.Duration
	measured                        bool
}

func (r *rtt) update(sample, delay time.Duration) {
	r.latest = sample
	if !r.measured {
		r.measured = true
		r.smoothed, r.variance, r.min = sample, sample/2, sample
		return
	}
	r.min = min(r.min, sample)
	if delay = min(delay, maxAckDelay); sample >= r.min+delay {
		sample -= delay
	}
	r.variance = (3*r.variance + (r.smoothed - sample).Abs()) / 4
	r.smoothed = (7*r.smoothed + sample) / 8
}

// pto returns how long to wait for an answer: RFC 9002 §6.2.1.
func (r *rtt) pto() time.Duration {
	if r.smoothed == 0 {
		return initialRTT + 2*initialRTT + maxAckDelay
	}
	return r.smoothed + max(4*r.variance, granularity) + maxAckDelay
}

// onAck handles an ACK frame. Numbers that the batch now being sent may get are deferred until its
// packets' numbers are known.
func (s *Session) onAck(now time.Duration, ranges []span, delay time.Duration) error {
	if largest := ranges[0].hi; largest >= s.carrier.NextNumber() && !(s.sending && largest < s.sent.next) {
		return s.violation(codeProtocol, "an acknowledgement of a packet that was never sent")
	}
	if s.sending && ranges[0].hi >= s.batchFirst {
		s.late.ranges = append(s.late.ranges[:0], ranges...)
		s.late.delay, s.late.at = delay, now
	}
	s.applyAck(now, ranges, delay)
	return nil
}

func (s *Session) applyAck(now time.Duration, ranges []span, delay time.Duration) {
	l := &s.sent
	f := feedback{now: now, prior: s.inFlight, limited: !s.appLimited()}
	var newest uint64
	var newestPacket sentPacket
	for _, r := range ranges {
		hi := min(r.hi+1, l.next)
		if s.sending {
			hi = min(hi, s.batchFirst)
		}
		if hi <= l.base {
			break
		}
		for n := hi; n > max(r.lo, l.base); {
			p := l.at(n - 1)
			if p.state == packetAbsent {
				n = l.absentFrom(n)
				continue
			}
			n--
			if n >= newest {
				newest = n
				newestPacket.sent, newestPacket.size = p.sent, p.size
				newestPacket.delivered, newestPacket.deliveredAt = p.delivered, p.deliveredAt
				newestPacket.firstSent, newestPacket.appLimited = p.firstSent, p.appLimited
				newestPacket.state = p.state
			}
			s.onPacketAcked(&f, n, p)
		}
	}
	if f.acked == 0 {
		return
	}
	if newest >= s.largestAcked {
		s.largestAcked = newest
		if sample := now - newestPacket.sent; sample > 0 {
			s.rtt.update(sample, delay)
			if f.rtt = sample; sample-delay > s.rtt.min { // delay may be the largest number there is
				f.rtt = sample - min(delay, maxAckDelay)
			}
		}
	}
	s.ptoCount, s.suspected = 0, false
	s.rateSample(&f, &newestPacket)
	s.detectLoss(now, &f)
	s.tellController(&f)
	l.advance()
}

// onPacketAcked releases what a packet that arrived has carried.
func (s *Session) onPacketAcked(f *feedback, number uint64, p *sentPacket) {
	if p.state == packetLost {
		// It was only late: be slower to declare losses from now on.
		s.threshold = min(max(s.threshold, s.largestAcked-min(number, s.largestAcked)+1), 1024)
		if late := f.now - p.sent - s.rtt.smoothed*9/8; late > s.reordering {
			s.reordering = min(late, s.rtt.smoothed)
		}
		s.packetsLost--
		s.repeats.late()
		s.control.onSpurious(f.now)
	} else {
		s.inFlight -= int(p.size)
		s.repeats.arrived()
		f.acked += int(p.size)
		s.delivered += uint64(p.size)
	}
	f.acked = max(f.acked, 1)
	s.mtu.onAcked(s, f.now, p)
	if p.ackLargest > 0 {
		s.received.forget(p.ackLargest - 1)
	}
	p.each(s.onFrameAcked)
	p.clear()
}

// rateSample measures how fast packets arrive.
func (s *Session) rateSample(f *feedback, p *sentPacket) {
	s.deliveredAt, s.firstSent = f.now, p.sent
	f.delivered, f.priorDelivered = s.delivered, p.delivered
	interval := max(p.sent-p.firstSent, f.now-p.deliveredAt)
	if interval > 0 && interval >= s.rtt.min && p.state != packetLost {
		f.rate = float64(s.delivered-p.delivered) / interval.Seconds()
	}
	f.appLimited = p.appLimited
}

// lossDelay is how long after the arrival of a later packet a packet counts as lost.
func (s *Session) lossDelay() time.Duration {
	return max(max(s.rtt.smoothed, s.rtt.latest)*9/8+s.reordering, granularity)
}

// detectLoss declares packets lost by RFC 9002 §6.1, with thresholds that have grown if the path
// reorders, and sets the timer for those that may be lost. Packets leave in the order of their
// numbers, so it stops at the first that is not lost.
func (s *Session) detectLoss(now time.Duration, f *feedback) {
	l, delay := &s.sent, s.lossDelay()
	s.lossAt = 0
	var first, last time.Duration
	for l.judged = l.unjudged(); l.judged < min(l.next, s.largestAcked); l.judged++ {
		p := l.at(l.judged)
		if p.state != packetInFlight {
			continue
		}
		if p.sent+delay > now && s.largestAcked-l.judged < s.threshold {
			s.lossAt = p.sent + delay
			break
		}
		s.declareLost(p)
		if p.probe {
			continue // says nothing of congestion
		}
		s.repeats.lost()
		if f.lost == 0 {
			first = p.sent
		}
		last = p.sent
		f.lost += int(p.size)
		f.lostSent = p.sent
	}
	l.forget(now - 3*s.rtt.pto())
	if last-first > 3*s.rtt.pto() && s.rtt.measured && f.acked <= s.mtu.size {
		s.control.onPersistent(now)
	}
}

// declareLost queues what a packet carried again.
func (s *Session) declareLost(p *sentPacket) {
	p.state = packetLost
	s.inFlight -= int(p.size)
	s.packetsLost++
	s.mtu.onLost(s, p)
	p.each(s.onFrameLost)
}

func (s *Session) tellController(f *feedback) {
	f.srtt, f.inflight = s.rtt.smoothed, s.inFlight
	s.control.onFeedback(f)
}

// onLossTimer declares packets lost that have been waited for long enough.
func (s *Session) onLossTimer(now time.Duration) {
	f := feedback{now: now, prior: s.inFlight, delivered: s.delivered}
	s.detectLoss(now, &f)
	if f.lost > 0 {
		s.tellController(&f)
	}
	s.sent.advance()
}

// ptoAt returns when the next probe is due, or zero. The wait doubles each time, to at most half a
// second once the path is known, so that a dead path is noticed in time.
func (s *Session) ptoAt() time.Duration {
	if s.inFlight == 0 {
		return 0
	}
	pto := s.rtt.pto()
	return s.lastEliciting + max(pto, min(pto<<min(s.ptoCount, 6), 500*time.Millisecond))
}

// onPTO sends the oldest data once more: RFC 9002 §6.2.4.
func (s *Session) onPTO(now time.Duration) {
	s.ptoCount++
	s.mtu.onPTO(s, now)
	s.probes, s.pingPending = 2, true
	left := 4
	for n := s.sent.unjudged(); n < s.sent.next && left > 0; n++ {
		if p := s.sent.at(n); p.state == packetInFlight && !p.probe {
			p.each(s.onFrameLost)
			left--
		}
	}
}

// abandonFlight resends everything that is in flight, because the path has changed.
func (s *Session) abandonFlight() {
	for n := s.sent.unjudged(); n < s.sent.next; n++ {
		if p := s.sent.at(n); p.state == packetInFlight {
			s.declareLost(p)
		}
	}
	s.lossAt = 0
}
