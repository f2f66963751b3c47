package reliable

import (
	"errors"
	"fmt"
	"net"
	"time"
)

// receiveBatch is how many packets one Receive accepts at most.
const receiveBatch = 64

// receiveLoop handles what arrives until the carrier is closed.
func (s *Session) receiveLoop() {
	packets := make([]Packet, 4) // more once they come in numbers
	for {
		n, err := s.carrier.Receive(packets)
		if n == len(packets) && n < receiveBatch {
			packets = append(packets, make([]Packet, min(3*n, receiveBatch-n))...)
		}
		s.mu.Lock()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.end(&endError{"receive: " + err.Error()}, nil)
			} else {
				s.end(&carrierError{err}, nil)
			}
		}
		if s.err != nil {
			s.mu.Unlock()
			if err != nil {
				return
			}
			continue // the sender closes the carrier
		}
		s.mu.Unlock()
		s.onPackets(packets[:n])
	}
}

// onPackets handles what arrived, one call at a time.
func (s *Session) onPackets(packets []Packet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	now := s.now()
	for i := range packets {
		if s.onPacket(now, &packets[i]) != nil {
			break
		}
	}
	s.afterPackets(now)
	s.handOver()
	s.handDatagrams()
}

// onPacket handles one packet. If it returns an error, the session has ended.
func (s *Session) onPacket(now time.Duration, p *Packet) error {
	fresh, reordered := s.received.add(p.Number)
	if !fresh {
		return nil
	}
	s.packetsRecv++
	s.keepHeard(now)
	s.lastReceived, s.unanswered = now, 0
	at := now
	if !p.Time.IsZero() {
		at = min(now, p.Time.Sub(s.start))
	}
	if p.Number >= s.newest {
		s.newest, s.newestAt = p.Number, at
	}
	eliciting, acks := false, 0
	for b := p.Data; len(b) > 0; {
		n, err := decodeFrame(b, &s.frame)
		if err != nil {
			return s.violation(codeFrame, fmt.Sprintf("a packet that cannot be read: %v", err))
		}
		b = b[n:]
		switch s.frame.Type {
		case framePadding, frameClose:
		case frameAck:
			if acks++; acks > 4 { // each walks what is in flight
				return s.violation(codeProtocol, "a packet of too many acknowledgements")
			}
		case framePing:
			eliciting, s.ackNow = true, true
		default:
			eliciting, s.active = true, s.cfg.Initiator
		}
		if err := s.onFrame(now, &s.frame); err != nil {
			return err
		}
	}
	if eliciting {
		s.ackCount++
		s.bulk++
		if reordered {
			s.ackNow = true
		}
	}
	return nil
}

// ackEvery is after how many packets an ACK is sent: often at first, while the peer explores the
// path, and less often in bulk transfers.
func (s *Session) ackEvery() int {
	if s.packetsRecv < 100 {
		return 2
	}
	return 10
}

// afterPackets decides whether an ACK is due.
func (s *Session) afterPackets(now time.Duration) {
	if s.ackCount >= s.ackEvery() {
		s.ackNow = true
	}
	if s.ackCount > 0 && s.ackAt == 0 {
		s.ackAt = now + maxAckDelay
	}
	s.attend(now)
}

// onFrame acts on a frame.
func (s *Session) onFrame(now time.Duration, f *frame) error {
	switch f.Type {
	case frameAck:
		return s.onAck(now, f.Ranges, f.Delay)
	case frameStream:
		return s.onStreamData(f)
	case frameMaxData:
		if f.Value > s.peerData {
			s.peerData = f.Value
			s.feedStarved()
		}
	case frameMaxStreams:
		if f.Value > 1<<60 {
			return s.violation(codeFrame, "a limit on streams that is too large")
		}
		if f.Value > s.peerStreams {
			s.peerStreams = f.Value
			s.opening.Broadcast()
		}
	case frameKeepAlive:
		if !s.cfg.Initiator {
			s.keep.told(f.Value)
		}
	case frameMaxStreamData:
		st, err := s.known(f.Stream)
		if st != nil && f.Value > st.allowed {
			st.allowed = f.Value
			st.madeRoom()
			s.activate(st)
			s.wake()
		}
		return err
	case frameResetStream:
		return s.onReset(f)
	case frameStopSending:
		st, err := s.known(f.Stream)
		if st != nil && !st.stopped {
			st.stopped = true
			st.resetWriting()
			st.writable.Broadcast()
		}
		return err
	case frameClose:
		s.end(&CloseError{Code: f.Value, Reason: string(f.Data)}, nil)
		return s.err
	case frameDatagram:
		s.bytesReceived += uint64(len(f.Data))
		s.inbox.push(f.Data, false)
		if s.handle == nil {
			s.arriving.Broadcast()
		}
	case frameStreamDataBlocked:
		_, err := s.known(f.Stream)
		return err
	}
	return nil
}

// known returns the stream with an id, or nil if it has ended. It creates streams that the peer
// opens.
func (s *Session) known(id uint64) (*Stream, error) {
	if st := s.streams[id]; st != nil {
		if !st.announced && id&1 != s.side() {
			st.announced = true
			s.accepts = append(s.accepts, st)
			s.accepting.Broadcast()
		}
		return st, nil
	}
	if id&2 != 0 {
		return nil, s.violation(codeStreamState, "a frame of a stream in one direction")
	}
	count := id>>2 + 1
	if id&1 == s.side() {
		if count > s.nextLocal {
			return nil, s.violation(codeStreamState, "a frame of a stream that was never opened")
		}
		return nil, nil
	}
	if count <= s.nextRemote {
		return nil, nil
	}
	if count > s.ourStreams {
		return nil, s.violation(codeStreamLimit, fmt.Sprintf("stream %d, beyond the limit of %d", count, s.ourStreams))
	}
	for ; s.nextRemote < count; s.nextRemote++ {
		s.newStream(s.nextRemote<<2 | id&3)
	}
	return s.known(id)
}

func (s *Session) onStreamData(f *frame) error {
	st, err := s.known(f.Stream)
	if st == nil {
		return err
	}
	end := f.Offset + uint64(len(f.Data))
	if err := s.extend(st, end, f.Fin); err != nil {
		return err
	}
	if st.finished {
		s.consume(st.highest - st.read)
		st.read = st.highest
		if st.finKnown {
			st.finishReading()
		}
		return nil
	}
	before := st.available()
	off, data := f.Offset, f.Data
	if off < before { // what may be being read must not be written again
		data = data[min(before-off, uint64(len(data))):]
		off = before
	}
	if len(data) > 0 {
		st.in.write(st.read, off, data)
		had := st.have.n
		s.bytesReceived += st.have.add(off, off+uint64(len(data)))
		s.pieces += st.have.n - had
		if st.have.n > maxGaps || s.pieces > maxPieces {
			return s.violation(codeProtocol, "a stream in too many pieces")
		}
	}
	if st.available() > before || st.finKnown && st.available() == st.finalSize {
		if st.taker != nil {
			s.arrived = append(s.arrived, st)
		} else {
			st.readable.Signal()
		}
	}
	if st.finKnown && st.read == st.finalSize {
		st.finishReading()
	}
	return nil
}

// maxGaps limits the pieces into which gaps may divide a stream, and maxPieces those of all streams
// together: remembering a single byte on its own takes more memory than the byte. A stream without
// gaps counts as one piece.
const (
	maxGaps   = 8192
	maxPieces = 1 << 16
)

// extend checks that a stream may reach end, and updates flow control.
func (s *Session) extend(st *Stream, end uint64, fin bool) error {
	if st.finKnown && (end > st.finalSize || fin && end != st.finalSize) || fin && end < st.highest {
		return s.violation(codeFinalSize, "a stream with two ends")
	}
	if fin {
		st.finKnown, st.finalSize = true, end
	}
	if end <= st.highest {
		return nil
	}
	if end > st.granted {
		return s.violation(codeFlowControl, "more on a stream than its window")
	}
	s.recvData += end - st.highest
	st.highest = end
	s.hold()
	return nil
}

func (s *Session) onReset(f *frame) error {
	st, err := s.known(f.Stream)
	if st == nil {
		return err
	}
	ended := st.finKnown
	if err := s.extend(st, f.Offset, true); err != nil {
		return err
	}
	if !ended || !st.complete() || st.closedRead {
		st.gone = true
		st.discard()
		st.readable.Broadcast()
	}
	st.settle()
	return nil
}

// complete reports whether the whole stream has arrived.
func (st *Stream) complete() bool { return st.finKnown && st.available() == st.finalSize }

// discard drops what has arrived and will arrive.
func (st *Stream) discard() {
	if st.finished {
		if st.highest > st.read {
			st.s.consume(st.highest - st.read)
			st.read = st.highest
		}
		return
	}
	st.finished = true
	st.s.consume(st.highest - st.read)
	st.read = st.highest
	st.s.pieces -= st.have.n
	st.have = pieces{}
	if !st.copyingIn {
		st.in.reset()
	}
	if st.finKnown {
		st.finishReading()
	}
}

// finishReading records that nothing more will be read.
func (st *Stream) finishReading() {
	if st.finished && st.highest < st.finalSize { // never to arrive
		return
	}
	st.finished = true
	st.tellWindow, st.stopPending = false, false
	st.settle()
}

// settle forgets the stream once both directions have ended.
func (st *Stream) settle() {
	s := st.s
	reading := !st.finKnown || !st.gone && !(st.finished && st.read == st.finalSize)
	if reading || !st.finAcked && !st.resetAcked || s.streams[st.id] != st {
		return
	}
	delete(s.streams, st.id)
	s.pieces -= st.have.n
	switch {
	case st.id&1 == s.side():
		s.own--
		s.opening.Broadcast()
	case st.accepted: // else it waits for that still, and takes the place of another
		s.peerStreamOver()
	}
}

// peerStreamOver lets the peer open a stream in place of one that has ended.
func (s *Session) peerStreamOver() {
	s.remoteClosed++
	if limit := s.remoteClosed + uint64(s.cfg.MaxStreams); limit-s.ourStreams > uint64(s.cfg.MaxStreams)/8 {
		s.ourStreams, s.tellStreams = limit, true
		s.wake()
	}
}
