package reliable

import (
	"errors"
	"net"
	"runtime"
	"time"

	"adit/internal/lend"
)

const (
	// sendBatch and sendBytes limit what is passed to one Send of the carrier.
	sendBatch = 64
	sendBytes = 64 << 10
	never     = time.Duration(1<<63 - 1)
)

// slabs hold one batch each, with the carrier's room around every packet.
var slabs lend.Pool[[sendBytes + maxDatagram + sendBatch*128]byte]

// pacer is a bucket of bytes that fills at the controller's rate.
type pacer struct {
	tokens float64
	at     time.Duration
	due    time.Duration // when a worthwhile batch may leave; zero: now
}

// maxLate limits how much time a sender that woke late may make up for.
const maxLate = 16 * time.Millisecond

// refill adds tokens for the time since the last call. Timers are no finer than a millisecond, so
// the bucket holds what two of them bring, and also what a late timer brings: on a busy machine,
// the path must not wait for the processor.
func (p *pacer) refill(now time.Duration, rate float64, datagram int) {
	burst := max(8*float64(datagram), rate*0.002)
	if p.due > 0 && now > p.due {
		burst += rate * min(now-p.due, maxLate).Seconds()
	}
	p.tokens = min(burst, p.tokens+rate*(now-p.at).Seconds())
	p.at, p.due = now, 0
}

// wait determines when there will be tokens for a small batch.
func (p *pacer) wait(rate float64, datagram int) {
	want := max(float64(datagram), min(rate*0.001, sendBytes)) - p.tokens
	p.due = p.at + max(time.Duration(want/rate*float64(time.Second)), 100*time.Microsecond)
}

// sendLoop sends whatever there is to send until the session ends, runs its timers, and closes the
// carrier.
func (s *Session) sendLoop() {
	defer s.timer.Stop()
	changed := s.carrier.PathChanged()
	s.mu.Lock()
	for s.err == nil {
		s.rounds++
		now := s.now()
		s.onTimers(now)
		if s.err != nil {
			break
		}
		if s.suspected && s.ptoCount == 2 {
			s.suspected = false
			if hook := s.cfg.OnSuspect; hook != nil {
				s.mu.Unlock()
				hook()
				s.mu.Lock()
			}
		}
		if !s.sending && s.flush(now) {
			select {
			case <-changed:
				s.onPathChanged(s.now())
			default:
			}
			continue
		}
		s.setTimer(now)
		s.sleeping = true
		s.mu.Unlock()
		moved := false
		select {
		case <-s.wakes:
		case <-s.timer.C:
		case _, moved = <-changed:
			if !moved {
				changed = nil
			}
		}
		runtime.Gosched() // those who have something to send go first: it leaves together
		s.mu.Lock()
		s.sleeping = false
		if moved {
			s.awaitSent()
			s.onPathChanged(s.now())
		}
	}
	s.awaitSent()
	goodbye := s.goodbye
	s.mu.Unlock()
	if goodbye != nil {
		for range 2 {
			b := make([]byte, s.head, s.head+len(goodbye)+s.tail)
			b = append(b, goodbye...)
			_, _ = s.carrier.Send([][]byte{b[:len(b)+s.tail]}) // the end is known here in any case
		}
	}
	s.carrier.Close()
}

// setTimer sets the timer on which the sender sleeps. The caller holds mu.
func (s *Session) setTimer(now time.Duration) {
	s.timer.Reset(max(0, min(s.nextTimer(now)-now, time.Hour)))
}

// attend makes the sender look at what has changed. If only its timers have changed, they are set
// here and the sender is not woken. The caller holds mu.
func (s *Session) attend(now time.Duration) {
	probing := !s.mtu.flying && s.mtu.next > 0 && s.mtu.next <= now
	switch {
	case s.err != nil || s.ackNow || s.probes > 0 || probing || s.wantsToSend():
		s.wake()
	case s.sleeping:
		s.setTimer(now)
	}
}

// sendNow sends what is waiting directly from the calling goroutine if the path is idle, which
// spares a small request the detour through the sender's goroutine. While something is in flight
// the sender does it, and gathers what arrives in the meantime. The caller holds mu, which is
// released while the carrier sends.
func (s *Session) sendNow() {
	if !s.sleeping || s.sending || s.inFlight > 0 {
		s.wake()
		return
	}
	s.flush(s.now())
	s.sentNow.Broadcast()
	s.attend(s.now())
}

// awaitSent waits until no sendNow is in progress. The caller holds mu.
func (s *Session) awaitSent() {
	for s.sending {
		s.sentNow.Wait()
	}
}

// onTimers does what is due.
func (s *Session) onTimers(now time.Duration) {
	if s.lossAt > 0 && now >= s.lossAt {
		s.onLossTimer(now)
	}
	if at := s.ptoAt(); at > 0 && now >= at {
		s.onPTO(now)
		s.suspected = s.ptoCount == 2
		s.lastEliciting = now // the next probe is due a timeout from here
	}
	if s.ackAt > 0 && now >= s.ackAt {
		s.ackNow = true
	}
	if at := s.repeatAt(); at > 0 && now >= at {
		s.repeatSmall(now)
	}
	if s.unanswered > 0 && s.ptoCount >= 3 && now >= s.silentAt() {
		s.end(ErrTimeout, appendClose(nil, codeTimeout, "no answer"))
		return
	}
	if now-s.lastReceived >= s.silence() && s.unanswered == 0 {
		s.pingPending, s.keep.asked = true, true
		if !s.sending {
			s.sent.rest()
		}
	}
	if at := s.quietAt(); at > 0 && now >= at {
		s.pingPending, s.bulk, s.active = true, 0, false
	}
}

// silentAt returns when to give up a peer that has left packets unanswered. If only pings are in
// flight, the side that cannot look for another path waits for the peer's next keep-alive, which
// may come from an address of which it has not heard yet.
func (s *Session) silentAt() time.Duration {
	at := s.unanswered + max(s.cfg.Timeout, 2*s.rtt.pto())
	if !s.cfg.Initiator && s.buffered == 0 {
		at = max(at, s.lastReceived+s.silence()+s.cfg.Timeout)
	}
	return at
}

// quietAt returns when a side asks whether the peer is alive because its traffic has stopped: it
// has nothing in flight whose loss would reveal a dead path, and the peer may be waiting to hear
// from its new address. That is soon after a bulk of packets, and a little later after anything
// else on the side whose address changes. Zero means never.
func (s *Session) quietAt() time.Duration {
	const least = 8 // packets in a row are bulk
	switch {
	case s.unanswered > 0:
		return 0
	case s.bulk >= least:
		return s.lastReceived + max(200*time.Millisecond, 2*s.rtt.pto())
	case s.active:
		return s.lastReceived + max(time.Second, 4*s.rtt.pto())
	}
	return 0
}

// nextTimer returns when onTimers or flush has something to do. While another goroutine sends a
// batch, flush has to wait for its end, which wakes the sender.
func (s *Session) nextTimer(now time.Duration) time.Duration {
	next := never
	at := func(t time.Duration) {
		if t > 0 && t < next {
			next = t
		}
	}
	at(s.lossAt)
	at(s.ptoAt())
	at(s.quietAt())
	if !s.sending {
		at(s.ackAt)
		at(s.repeatAt())
		at(s.pacer.due)
		if !s.mtu.flying && s.mtu.next > now {
			at(s.mtu.next)
		}
	}
	if s.unanswered == 0 {
		if !s.sending {
			at(s.lastReceived + s.silence())
		}
	} else if s.ptoCount >= 3 {
		at(max(now+granularity, s.silentAt()))
	}
	return next
}

// onPathChanged restarts the path's measurements.
func (s *Session) onPathChanged(now time.Duration) {
	s.abandonFlight()
	s.control = newController(s.cfg.Congestion, baseDatagram)
	smoothed := s.rtt.smoothed
	s.rtt = rtt{smoothed: smoothed, variance: smoothed / 2}
	size := baseDatagram
	inStream, _ := s.carrier.(interface{ Detoured() bool }) // it takes all sizes
	if s.ptoCount >= 2 && (inStream == nil || !inStream.Detoured()) {
		// Nothing got through, yet the other path was found with small packets: the path may not
		// carry large ones.
		size = floorDatagram
	}
	s.mtu.restart(now, size)
	s.setDatagram(size)
	s.threshold, s.reordering = packetThreshold, 0
	s.ptoCount, s.suspected, s.probes, s.unanswered = 0, false, 1, 0
	if s.cfg.Initiator {
		s.keep.forget()
	}
	s.pacer = pacer{at: now}
	s.repeats = repeats{at: now, said: s.repeats.said}
	s.pingPending = true
}

// flush sends at most one batch, and reports whether there was one. The caller holds the lock,
// which is released while the carrier sends.
func (s *Session) flush(now time.Duration) bool {
	slab := slabs.Get()
	defer slabs.Put(slab)
	s.batchFirst = s.carrier.NextNumber()
	most := s.packetsWaiting()
	if !s.sent.reserve(s.batchFirst, most) {
		if !s.ackNow && s.probes == 0 {
			s.pacer.due = now + granularity
			return false
		}
		// Without these, neither side might ever learn what has become of the rest.
		most = 1
		s.displace(s.batchFirst)
	}
	s.batch = s.batch[:0]
	s.assemble(now, slab[:], most)
	if len(s.batch) == 0 {
		return false
	}
	s.sending = true
	s.mu.Unlock()
	first, err := s.carrier.Send(s.batch)
	s.mu.Lock()
	s.sending = false
	s.packetsSent += uint64(len(s.batch))
	switch {
	case err != nil && errors.Is(err, net.ErrClosed):
		s.end(&carrierError{err}, nil)
	case err != nil:
		// The batch counts as sent and will be found lost. A probe may have been too large to send.
		if p := s.sent.at(s.batchFirst); p.state == packetInFlight && p.probe {
			s.declareLost(p)
			p.clear()
		}
	case first != s.batchFirst:
		s.renumber(first)
	}
	if len(s.late.ranges) > 0 && s.err == nil {
		s.applyAck(s.late.at, s.late.ranges, s.late.delay)
		s.late.ranges = s.late.ranges[:0]
	}
	return true
}

// renumber corrects the log if other packets of the carrier took the numbers that this batch was
// expected to get.
func (s *Session) renumber(first uint64) {
	l, n := &s.sent, uint64(len(s.batch))
	shift := first - s.batchFirst
	if first < s.batchFirst || shift > maxTracked {
		return
	}
	for l.next-l.base+shift > uint64(len(l.entries)) {
		if !l.grow() {
			return
		}
	}
	l.next += shift
	for number := s.batchFirst + n; number < first; number++ {
		l.at(number).clear()
	}
	s.repeats.renumber(s.batchFirst, shift)
	for i := n; i > 0; i-- {
		from, to := l.at(s.batchFirst+i-1), l.at(first+i-1)
		more := to.more[:0]
		*to = *from
		from.more = more
		from.state, from.n = packetAbsent, 0
		from.frames = [2]sentFrame{}
	}
}

// packetsWaiting returns how many packets the next batch may have: at most sendBatch, and for a
// session with little to send not many more than it needs, because the log has room for each.
func (s *Session) packetsWaiting() int {
	return int(min(8+s.buffered/int64(s.payload)+int64(s.outbox.n), sendBatch))
}

// assemble builds packets in slab until there is no more to send, no more may be sent, or there are
// most of them.
func (s *Session) assemble(now time.Duration, slab []byte, most int) {
	rate := s.control.rate()
	if s.rtt.smoothed < granularity && s.rtt.measured {
		rate = 0 // timers are too coarse to pace a path this short
	}
	if rate > 0 {
		s.pacer.refill(now, rate, s.mtu.size)
	} else {
		s.pacer.due = 0
	}
	if s.probe(now, slab) {
		return
	}
	defer s.noteLimit()
	used := 0
	for len(s.batch) < most && used < sendBytes {
		may := s.probes > 0 || s.inFlight+s.mtu.size <= s.control.window()
		if may && s.probes == 0 && rate > 0 && s.pacer.tokens < float64(s.mtu.size) {
			may = false
			if s.wantsToSend() {
				s.pacer.wait(rate, s.mtu.size)
			}
		}
		if !may && !s.ackNow {
			return
		}
		room := slab[used+s.head : used+s.head : used+s.head+s.payload]
		entry := s.sent.at(s.batchFirst + uint64(len(s.batch)))
		entry.clear()
		body, eliciting := s.fill(now, room, entry, may)
		if len(body) == 0 {
			return
		}
		size := s.commit(now, entry, slab[used:used+s.head+len(body)+s.tail], eliciting, len(body))
		used += size
		if eliciting && rate > 0 {
			s.pacer.tokens -= float64(size)
		}
		if eliciting && s.probes > 0 {
			s.probes--
		}
	}
}

// wantsToSend reports whether anything but an ACK is waiting.
func (s *Session) wantsToSend() bool {
	return s.queue.head != nil || s.fresh.head != nil || s.beside.head != nil ||
		s.outbox.n > 0 || s.pingPending || s.tellData || s.tellStreams || s.keep.tell && s.cfg.Initiator
}

// commit records a packet as sent.
func (s *Session) commit(now time.Duration, p *sentPacket, packet []byte, eliciting bool, body int) int {
	size := len(packet)
	s.batch = append(s.batch, packet)
	s.sent.next = s.batchFirst + uint64(len(s.batch))
	if !eliciting {
		p.clear()
		return size
	}
	if s.inFlight == 0 {
		s.firstSent, s.deliveredAt = now, now
	}
	p.state, p.sent, p.size = packetInFlight, now, int32(size)
	p.delivered, p.deliveredAt, p.firstSent = s.delivered, s.deliveredAt, s.firstSent
	p.appLimited = s.appLimited()
	p.probe = false
	if p.small > 0 {
		s.repeats.note(s.sent.next-1, now+s.repeatAfter())
	}
	s.inFlight += size
	s.lastEliciting = now
	if p.n > 0 {
		s.active = s.cfg.Initiator
	}
	if s.unanswered == 0 {
		s.unanswered = now
	}
	return size
}

// appLimited reports whether the application, rather than the path, limits what is sent. It stays
// true until more than what was in flight at that time has arrived, so that whatever follows a
// pause is also attributed to it.
func (s *Session) appLimited() bool { return s.limitedUntil > 0 && s.limitedUntil >= s.delivered }

// noteLimit records that nothing is waiting although more could be in flight.
func (s *Session) noteLimit() {
	if !s.wantsToSend() && s.inFlight+s.mtu.size <= s.control.window() {
		s.limitedUntil = max(1, s.delivered+uint64(s.inFlight))
	}
}

// probe builds a probe of the path's MTU, alone in its batch, if one is due.
func (s *Session) probe(now time.Duration, slab []byte) bool {
	size := s.mtu.due(s, now)
	if size == 0 {
		return false
	}
	room := s.carrier.MaxPayload(size)
	if room <= s.payload || s.head+room+s.tail > len(slab) {
		s.mtu.failed(now)
		return false
	}
	body := slab[s.head : s.head+room]
	clear(body)
	body[0] = framePing
	entry := s.sent.at(s.batchFirst)
	entry.clear()
	s.commit(now, entry, slab[:s.head+room+s.tail], true, room)
	entry.probe = true
	s.mtu.onSent(size)
	return true
}
