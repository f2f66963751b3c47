package reliable

import (
	"slices"
	"time"
)

const (
	// turn is how many bytes of a stream leave before the next stream's turn. A stream that had
	// nothing to send gets its first turn ahead of those that always have, as in FQ-CoDel (RFC 8290
	// §4.2).
	turn = 16 << 10
	// least is the minimum room for starting a STREAM frame.
	least = 32
)

// streamQueue is a queue of streams, linked through them.
type streamQueue struct{ head, tail *Stream }

func (q *streamQueue) push(st *Stream) {
	st.queued, st.next = q, nil
	if q.tail == nil {
		q.head = st
	} else {
		q.tail.next = st
	}
	q.tail = st
}

func (q *streamQueue) pop() {
	st := q.head
	if q.head = st.next; q.head == nil {
		q.tail = nil
	}
	st.queued, st.next = nil, nil
}

// activate queues a stream that has something to send.
func (s *Session) activate(st *Stream) {
	if st.queued == nil && st.pending() {
		st.credit = turn
		s.fresh.push(st)
	}
}

// controls queues a stream that has frames other than data to send.
func (s *Session) controls(st *Stream) {
	if st.inControl {
		return
	}
	st.inControl, st.nextControl = true, nil
	if s.beside.tail == nil {
		s.beside.head = st
	} else {
		s.beside.tail.nextControl = st
	}
	s.beside.tail = st
	s.wake()
}

// pending reports whether the stream has data or its end to send now.
func (st *Stream) pending() bool {
	if st.resetWanted {
		return false
	}
	return len(st.again) > 0 || st.sentTo < min(st.end, st.allowed) ||
		st.finWanted && !st.finSent && st.sentTo == st.end
}

// starve records a stream for which the session's window has no room. Streams may come and go while
// a peer grants none, so finished ones are removed now and then.
func (s *Session) starve(st *Stream) {
	if len(s.starved) > 64+2*len(s.streams) {
		s.starved = slices.DeleteFunc(s.starved, func(st *Stream) bool { return s.streams[st.id] != st })
	}
	st.starvedIn = true
	s.starved = append(s.starved, st)
}

// feedStarved gives streams another chance once the session's window has grown.
func (s *Session) feedStarved() {
	list := s.starved
	s.starved = nil
	for _, st := range list {
		st.starvedIn = false
		s.activate(st)
	}
	s.wake()
}

// fill writes one packet into b, whose capacity is that of a full packet. Unless may is set, it
// writes only an ACK. It reports whether the packet asks for an answer.
func (s *Session) fill(now time.Duration, b []byte, p *sentPacket, may bool) ([]byte, bool) {
	room := cap(b)
	hasAck := s.ackNow || s.ackCount > 0 && may && s.wantsToSend()
	if hasAck {
		s.ackRanges = s.received.ranges(s.ackRanges[:0])
		b = appendAck(b, s.ackRanges, now-s.newestAt, min(room, 512))
		if len(s.ackRanges) > 0 {
			p.ackLargest = s.ackRanges[0].hi + 1
		}
		s.ackNow, s.ackCount, s.ackAt = false, 0, 0
	} else {
		p.ackLargest = 0
	}
	if !may {
		return b, false
	}
	ack := len(b)
	b = s.fillControl(b, p)
	// Datagrams and streams take turns packet by packet while both are waiting.
	turn := !s.datagramsLast || s.fresh.head == nil && s.queue.head == nil
	s.datagramsLast = false
	for turn && s.outbox.n > 0 {
		data := s.outbox.front()
		if len(data)+datagramHeader > room { // the path has shrunk
			s.dropDatagram()
			continue
		}
		if len(data)+datagramHeader > room-len(b) {
			break
		}
		b = appendDatagram(b, data)
		s.bytesSent += uint64(len(data))
		s.dropDatagram()
		s.datagramsLast = true
	}
	if s.outbox.n == 0 || !s.datagramsLast {
		b = s.fillStreams(b, p)
	}
	// A side that only receives asks for an answer now and then, to measure the round trip and to
	// forget old ranges.
	if s.pingPending || len(b) == ack && hasAck && now-s.lastEliciting > max(100*time.Millisecond, s.rtt.smoothed) {
		if len(b) < room {
			b = append(b, framePing)
			s.pingPending = false
		}
	}
	return b, len(b) > ack
}

func (s *Session) dropDatagram() { unbuffer(s.outbox.pop()) }

// fillControl appends limits, resets and the like.
func (s *Session) fillControl(b []byte, p *sentPacket) []byte {
	const most = 1 + 8 + 8 + 8 // of one frame
	if s.tellData && cap(b)-len(b) >= most {
		b = appendNumbers(b, frameMaxData, s.recvAllowed)
		p.add(sentFrame{kind: sentMaxData})
		s.tellData = false
	}
	if s.tellStreams && cap(b)-len(b) >= most {
		b = appendNumbers(b, frameMaxStreams, s.ourStreams)
		p.add(sentFrame{kind: sentMaxStreams})
		s.tellStreams = false
	}
	if s.keep.tell && s.cfg.Initiator && cap(b)-len(b) >= most {
		b = appendNumbers(b, frameKeepAlive, uint64(s.keep.interval.Milliseconds()))
		p.add(sentFrame{kind: sentKeepAlive})
		s.keep.tell = false
	}
	for s.beside.head != nil && cap(b)-len(b) >= 3*most {
		st := s.beside.head
		if s.beside.head = st.nextControl; s.beside.head == nil {
			s.beside.tail = nil
		}
		st.inControl, st.nextControl = false, nil
		if st.tellWindow && !st.finKnown {
			b = appendNumbers(b, frameMaxStreamData, st.id, st.granted)
			p.add(sentFrame{kind: sentMaxStreamData, stream: st})
		}
		if st.stopPending && !st.finKnown {
			b = appendNumbers(b, frameStopSending, st.id, codeNone)
			p.add(sentFrame{kind: sentStop, stream: st})
		}
		if st.resetPending {
			b = appendNumbers(b, frameResetStream, st.id, codeNone, st.sentTo)
			p.add(sentFrame{kind: sentReset, stream: st})
		}
		st.tellWindow, st.stopPending, st.resetPending = false, false, false
	}
	return b
}

// fillStreams appends stream data: first of streams that had nothing to send until now, then of the
// others in turn.
func (s *Session) fillStreams(b []byte, p *sentPacket) []byte {
	for {
		q := &s.fresh
		if q.head == nil {
			q = &s.queue
		}
		st := q.head
		if st == nil {
			return b
		}
		before := len(b)
		if st.pending() {
			if cap(b)-len(b) < least+streamHeader(st.id, st.end, blockSize) {
				return b
			}
			b = st.append(b, p)
		}
		switch {
		case !st.pending() || len(b) == before:
			q.pop() // nothing, or nothing that the session's window allows
		case st.credit <= 0:
			q.pop()
			st.credit = turn
			if st.priority {
				s.fresh.push(st)
			} else {
				s.queue.push(st)
			}
		}
	}
}

// append appends one STREAM frame: lost data first, then new data.
func (st *Stream) append(b []byte, p *sentPacket) []byte {
	s := st.s
	lo, hi := st.sentTo, min(st.end, st.allowed)
	again := len(st.again) > 0
	if again {
		lo, hi = st.again[0].lo, st.again[0].hi
	} else if left := s.peerData - s.sentData; hi > lo && hi-lo > left {
		if hi = lo + left; left == 0 && !st.starvedIn {
			s.starve(st)
		}
	}
	room := cap(b) - len(b)
	room -= streamHeader(st.id, lo, room)
	hi = min(hi, lo+uint64(room))
	fin := st.finWanted && hi == st.end
	if hi <= lo && !(fin && !st.finSent) {
		return b
	}
	n := int(hi - lo)
	b = appendStreamHeader(b, st.id, lo, n, fin)
	b = b[:len(b)+n]
	st.out.read(lo, b[len(b)-n:])
	if again {
		st.again.remove(lo, hi)
	} else {
		s.sentData += uint64(n)
		s.bytesSent += uint64(n)
		st.sentTo = hi
	}
	if fin {
		st.finSent = true
	}
	st.credit -= n
	small := !again && st.end-st.base <= smallWrite && s.repeats.wanted()
	if small {
		p.small += int32(n) + least
	}
	p.add(sentFrame{kind: sentStream, stream: st, offset: lo, length: uint32(n), fin: fin, small: small})
	return b
}

// onFrameAcked releases what a frame carried.
func (s *Session) onFrameAcked(f *sentFrame) {
	st := f.stream
	switch f.kind {
	case sentReset:
		st.resetAcked = true
		st.settle()
	case sentStream:
		st.onAcked(f.offset, f.offset+uint64(f.length))
		if f.fin {
			st.finArrived = true
		}
		if st.finArrived && st.base == st.end && !st.resetWanted {
			st.finAcked = true
			st.settle()
		}
	}
}

// onAcked releases the bytes from lo to hi.
func (st *Stream) onAcked(lo, hi uint64) {
	if st.resetWanted || lo == hi {
		return
	}
	if len(st.again) > 0 {
		st.again.remove(lo, hi)
	}
	before := st.base
	if lo > st.base {
		st.ahead += st.acked.add(lo, hi)
		st.madeRoom()
		return
	}
	st.base = max(st.base, hi)
	for len(st.acked) > 0 && st.acked[0].lo <= st.base {
		st.ahead -= st.acked[0].hi - st.acked[0].lo
		st.base = max(st.base, st.acked[0].hi)
		st.acked = append(st.acked[:0], st.acked[1:]...)
	}
	if st.base == before {
		return
	}
	s := st.s
	s.buffered -= int64(st.base - before)
	st.out.release(st.base)
	if st.base == st.end && !st.copyingOut {
		st.out.reset()
	}
	st.madeRoom()
}

// room returns how many bytes may be written now.
func (st *Stream) room() int { return min(st.roomInFlight(), st.roomAtPeer()) }

// roomInFlight is what the stream may hold in addition to what waits for the peer. Bytes that have
// arrived after a loss do not count, because otherwise a repeated loss would stop the writer; but
// there is a limit on what is held for a peer that never fills the gap.
func (st *Stream) roomInFlight() int {
	limit, held := st.s.sendLimit(), int(st.end-st.base)
	if st.s.surplus() > 0 {
		return limit - held
	}
	return min(limit-held+int(st.ahead), 2*maxSendLimit-held)
}

// roomAtPeer is what the peer accepts now, and a little more: a stalled reader must not hold memory
// with which others could send.
func (st *Stream) roomAtPeer() int { return int(st.allowed) + beyondAllowed - int(st.end) }

// madeRoom wakes the writer once a sizeable part of what it may hold is free. What the peer accepts
// grows in sizeable steps anyway.
func (st *Stream) madeRoom() {
	if st.roomInFlight() >= st.s.sendLimit()/4 && st.roomAtPeer() > 0 {
		st.writable.Signal()
	}
}

// onFrameLost queues what a frame carried again.
func (s *Session) onFrameLost(f *sentFrame) {
	st := f.stream
	switch f.kind {
	case sentMaxData:
		s.tellData = true
	case sentMaxStreams:
		s.tellStreams = true
	case sentKeepAlive:
		s.keep.tell = true
	case sentMaxStreamData:
		if !st.finKnown {
			st.tellWindow = true
			s.controls(st)
		}
	case sentStop:
		if !st.finKnown {
			st.stopPending = true
			s.controls(st)
		}
	case sentReset:
		if !st.resetAcked {
			st.resetPending = true
			s.controls(st)
		}
	case sentStream:
		if st.resetWanted || st.finAcked {
			return
		}
		if lo, hi := max(f.offset, st.base), f.offset+uint64(f.length); lo < hi {
			st.again.add(lo, hi)
			for _, a := range st.acked[st.acked.from(lo):] {
				if a.lo >= hi {
					break
				}
				st.again.remove(a.lo, a.hi)
			}
		}
		if f.fin && !st.finArrived {
			st.finSent = false
		}
		s.activate(st)
	}
}

const (
	// maxSendLimit limits what may wait for the peer in one stream, whatever the path;
	// manySendLimit applies once all streams together hold what they may.
	maxSendLimit  = 8 << 20
	manySendLimit = 64 << 10
	// leastSendLimit is what any stream may have waiting, so that each makes progress.
	leastSendLimit = 4 << 10
	// beyondAllowed is how much of the waiting data the peer need not have allowed yet: enough to
	// start with when it allows more.
	beyondAllowed = 64 << 10
)

// sendLimit is how much of a stream may wait for the peer: twice what the path takes, and less the
// more all streams together hold.
func (s *Session) sendLimit() int {
	if over := s.surplus(); over > 0 {
		left := 1 - float64(over)/float64(s.cfg.SendBuffer)
		return max(int(manySendLimit*left), leastSendLimit)
	}
	return min(max(2*s.control.window(), 256<<10), maxSendLimit)
}

// surplus is by how much the data that waits for the peer in all streams, including what is being
// written, exceeds the limit.
func (s *Session) surplus() int64 { return s.buffered + s.laying - int64(s.cfg.SendBuffer) }
