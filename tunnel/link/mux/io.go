package mux

import (
	"errors"
	"io"
	"time"
)

// closeWriter is what a *tls.Conn has in addition to net.Conn.
type closeWriter interface{ CloseWrite() error }

// writeLoop passes frames to the connection, as many at once as have gathered, except for those
// that writeNow writes.
func (s *Session) writeLoop() {
	for {
		<-s.wake
		for {
			s.mu.Lock()
			if s.writing { // writeNow leaves what it cannot do to this goroutine, and wakes it
				s.mu.Unlock()
				break
			}
			if s.err == nil {
				s.fill()
			}
			ended, batch, left, leftBulk := s.err != nil, s.out, s.left, s.left && s.leftBulk
			s.out, s.left = nil, false
			flush := !ended || s.flushing
			s.writing = len(batch) > 0 || left || ended
			s.mu.Unlock()
			if len(batch) == 0 && !left && !ended {
				break
			}
			began := time.Now()
			if flush && s.write(batch, left) != nil {
				ended, flush = true, false
			}
			if ended {
				if cw, ok := s.conn.(closeWriter); ok && flush {
					_ = cw.CloseWrite() // the session has ended in any case
				}
				return
			}
			s.mu.Lock()
			s.wrote(len(batch), began, leftBulk || len(batch) >= minBatch)
			s.mu.Unlock()
		}
	}
}

// write writes a batch, after what writeNow left, if anything; an error ends the session.
func (s *Session) write(batch []byte, left bool) (err error) {
	if left {
		err = s.eager.Flush()
	}
	if len(batch) > 0 {
		if err == nil {
			_, err = s.conn.Write(batch)
		}
		putBatch(batch)
	}
	if err != nil {
		s.end(lost(err))
	}
	return err
}

// wrote records that a batch of that size, or what was left of one, has been written. Bulk writes
// update what is known of the path. It is called with mu held.
func (s *Session) wrote(size int, began time.Time, bulk bool) {
	s.writing, s.wroteAt = false, time.Now()
	if bulk && s.pace.wrote(size, s.wroteAt.Sub(began)) && s.waits != nil {
		s.waits.LimitUnsent(s.pace.unsent())
	}
}

// eagerConn is a connection that can be written to without blocking.
type eagerConn interface {
	// WriteNow takes all of b, and reports whether some of it is left for Flush.
	WriteNow(b []byte) (left bool, err error)
	Flush() error
}

const (
	// eagerMost is the size of the largest small write that is made without waking the writer.
	eagerMost = 8 << 10
	// eagerPause is how long nothing must have been written before such a write: in a busy session,
	// the writer gathers more for each of its writes.
	eagerPause = 40 * time.Microsecond
	// bulkLeast is the size at which a write is worth making directly, rather than waking the
	// writer, at any time.
	bulkLeast = maxBatch / 2
)

// writesNow reports whether a write of that size should bypass the writer's goroutine: for a lone
// request and for bulk data, waking it costs more. It is called with mu held.
func (s *Session) writesNow(size int) bool {
	if s.eager == nil || s.writing || s.left || len(s.out) > 0 || len(s.ring) > 0 || len(s.outgoing) > 0 {
		return false
	}
	return size >= bulkLeast || size <= eagerMost && time.Since(s.wroteAt) >= eagerPause
}

// writeNow writes the contents of out without waiting for the connection. It is called with mu
// held, which is released during the write.
func (s *Session) writeNow(bulk bool) {
	batch := s.out
	s.out, s.writing = nil, true
	s.mu.Unlock()
	size, began := len(batch), time.Now()
	left, err := s.eager.WriteNow(batch)
	putBatch(batch)
	if err != nil {
		s.end(lost(err))
	}
	s.mu.Lock()
	s.left, s.leftBulk = left, bulk
	s.wrote(size, began, bulk)
	if left || len(s.out) > 0 || len(s.ring) > 0 || len(s.outgoing) > 0 || s.err != nil {
		s.wakeWriter()
	}
}

// fill gathers the next batch: datagrams first, then each waiting stream in turn. It is called with
// mu held.
func (s *Session) fill() {
	for _, b := range s.outgoing {
		s.appendDatagram(b)
		putDatagram(b)
	}
	clear(s.outgoing)
	s.outgoing, s.outBytes = s.outgoing[:0], 0
	for len(s.ring) > 0 && len(s.out) < s.pace.batch {
		st := s.ring[0]
		s.ring[0] = nil
		s.ring = s.ring[1:]
		st.inRing = false
		if st.writeErr != nil {
			continue
		}
		s.fillFrame(st)
		if len(st.pending) == 0 {
			notify(st.writable)
			continue
		}
		s.enqueue(st)
	}
	if len(s.ring) == 0 {
		s.ring = nil
	}
}

// fillFrom moves pending bytes of a stream into frames, as far as its window and
// the batch allow. It is called with mu held.
func (s *Session) fillFrom(st *Stream) {
	for s.fillFrame(st) {
	}
}

// fillFrame moves one frame of a stream, and reports whether there was one. It is
// called with mu held.
func (s *Session) fillFrame(st *Stream) bool {
	if len(st.pending) == 0 || st.sendWindow == 0 || len(s.out) >= s.pace.batch {
		return false
	}
	if s.out == nil {
		s.out = getBatch()
	}
	n := min(len(st.pending), int(st.sendWindow), min(bulkSize, s.pace.batch)-headerSize)
	s.out = appendHeader(s.out, typeData, st.openFlag(), st.id, uint32(n))
	s.out = append(s.out, st.pending[:n]...)
	st.pending = st.pending[n:]
	st.sendWindow -= uint32(n)
	s.traffic()
	s.bytesSent.Add(uint64(n))
	return true
}

// readLoop handles frames from the connection until it ends.
func (s *Session) readLoop() {
	defer s.in.Close()
	err := s.readFrames()
	defer func() {
		s.mu.Lock()
		s.share.Close()
		s.mu.Unlock()
	}()
	var violation protocolError
	if errors.As(err, &violation) {
		s.violation(violation)
	} else {
		s.end(lost(err))
	}
	// After Close, the peer may still have been sending. Read that until the peer has ended too;
	// otherwise a TCP reset would destroy our last words on their way.
	s.mu.Lock()
	flushing := s.flushing
	s.mu.Unlock()
	if flushing {
		_, _ = io.Copy(io.Discard, &s.in)
	}
}

func (s *Session) readFrames() error {
	var raw [headerSize]byte
	for {
		s.handDatagrams(headerSize)
		if _, err := io.ReadFull(&s.in, raw[:]); err != nil {
			return err
		}
		h := parseHeader(raw[:])
		s.handDatagrams(int(h.length))
		if h.version != 0 {
			return protocolError("a frame of an unknown version")
		}
		s.heard()
		var err error
		switch h.kind {
		case typeData, typeWindow:
			err = s.streamFrame(h)
		case typePing:
			s.pingFrame(h)
		case typeGoAway:
			if h.length != 0 {
				err = errors.New("the peer gave up")
			}
		default:
			err = protocolError("a frame of an unknown type")
		}
		if err != nil {
			return err
		}
	}
}

func (s *Session) pingFrame(h header) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.share.Holds(s.buffered.Load())
	if h.flags&flagSYN != 0 {
		s.appendControl(typePing, flagACK, 0, h.length)
		return
	}
	if h.length != s.pingID || !s.pinging {
		return
	}
	sample := max(time.Since(s.pinged), 1)
	s.pinging, s.lastRTT = false, sample
	if old := time.Duration(s.rtt.Load()); old != 0 {
		sample = (7*old + sample) / 8
	}
	s.rtt.Store(int64(sample))
}

func (s *Session) streamFrame(h header) error {
	if h.id == controlID {
		return s.controlFrame(h)
	}
	st, err := s.lookup(h)
	if err != nil {
		return err
	}
	if h.kind == typeData && h.length > 0 {
		if err := s.receive(st, h.length); err != nil {
			return err
		}
	}
	if st == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams[st.id] != st {
		return nil
	}
	if h.flags&flagACK != 0 && !st.acked {
		st.acked = true
		s.unacked--
		close(s.free)
		s.free = make(chan struct{})
	}
	if h.kind == typeWindow && h.length > 0 {
		if uint64(st.sendWindow)+uint64(h.length) >= 1<<31 {
			return protocolError("a window beyond all bounds")
		}
		st.sendWindow += h.length
		s.enqueue(st)
	}
	if h.flags&flagRST != 0 {
		s.resetByPeer(st)
	} else if h.flags&flagFIN != 0 {
		st.rmu.Lock()
		st.finReceived = true
		st.rmu.Unlock()
		notify(st.readable)
		if st.finSent {
			s.drop(st)
		}
	}
	return nil
}

// resetByPeer ends a stream; data that the peer completed before is still read. It is called with
// mu held.
func (s *Session) resetByPeer(st *Stream) {
	s.drop(st)
	st.rmu.Lock()
	complete := st.finReceived
	st.rmu.Unlock()
	if !complete {
		st.fail(s.cfg.Reset, s.cfg.Reset)
		return
	}
	if st.writeErr == nil {
		st.writeErr = s.cfg.Reset
	}
	notify(st.writable)
}

// lookup finds the stream of a frame, or creates one that the peer opens. It returns neither a
// stream nor an error if the stream has already ended here.
func (s *Session) lookup(h header) (*Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[h.id]
	if h.flags&flagSYN == 0 || s.err != nil {
		return st, nil
	}
	if st != nil || h.id == 0 || (h.id%2 == 1) == s.cfg.Client {
		return nil, protocolError("a stream opened with another's number")
	}
	st = newStream(s, h.id, false)
	if s.remote >= s.cfg.PeerStreams {
		s.appendControl(typeWindow, flagRST, h.id, 0)
		return nil, nil
	}
	select {
	case s.accept <- st:
		s.streams[h.id] = st
		s.remote++
		s.peerID = max(s.peerID, h.id)
		return st, nil
	default:
		s.appendControl(typeWindow, flagRST, h.id, 0)
		return nil, nil
	}
}

// receive reads the body of a data frame into the stream. It drops the body if there is no stream,
// or if the stream is no longer read.
func (s *Session) receive(st *Stream, length uint32) error {
	if length >= 1<<31 { // no window is so large, and no int on 32 bits
		return protocolError("more bytes than any window allows")
	}
	if st == nil {
		return s.in.Discard(int(length))
	}
	st.rmu.Lock()
	closed, within := st.readErr != nil, length <= st.credit && !st.finReceived
	if within {
		st.credit -= length
		st.arriving = length
	}
	st.rmu.Unlock()
	if !within {
		return protocolError("more bytes on a stream than its window allows")
	}
	if closed {
		s.mu.Lock()
		s.giveUp(st)
		s.mu.Unlock()
		return s.in.Discard(int(length))
	}
	s.hold(int64(length))
	for left := int(length); left > 0; {
		b, err := s.in.Next(left)
		if err != nil {
			return err
		}
		left -= len(b)
		s.bytesReceived.Add(uint64(len(b))) // before a reader can have them
		s.deliver(st, b)
	}
	return nil
}

// deliver passes received data to a reader that takes it directly, and leaves the rest with the
// stream.
func (s *Session) deliver(st *Stream, b []byte) {
	b = b[st.offer(b):]
	if len(b) == 0 {
		return
	}
	st.rmu.Lock()
	defer notify(st.readable)
	defer st.rmu.Unlock()
	st.arriving -= uint32(len(b))
	if st.readErr != nil {
		return
	}
	st.length += len(b)
	s.buffered.Add(int64(len(b)))
	if kept, ok := s.in.Keep(b); ok {
		st.chunks = append(st.chunks, kept)
		return
	}
	// Small pieces share a chunk, so that memory use stays close to what the window allows.
	for len(b) > 0 {
		if last := len(st.chunks) - 1; last >= 0 {
			b = b[st.chunks[last].append(b):]
		}
		if len(b) > 0 {
			st.chunks = append(st.chunks, chunk{mem: takeMemory(chunkSize)})
		}
	}
}
