package mux

import (
	"context"
	"encoding/binary"
	"sync"
)

// controlID is the stream that the client opens right away and that nobody accepts. In both
// directions it carries messages: kind (1 byte), length (2, big-endian) and that many bytes.
// Unknown kinds are skipped.
const controlID = 1

const (
	messageDatagram = 1
	messageClose    = 2

	messageHeader = 3
	// reserved is the part of the window that datagrams leave free for the reason for the session's
	// end.
	reserved = MaxReason + messageHeader
	// maxQueued is how many bytes of datagrams may wait in each direction.
	maxQueued = 512 << 10
)

// controlStream is guarded by the session's mu, except for message and consumed, which belong to
// the reading goroutine.
type controlStream struct {
	open     bool   // the peer knows of the stream
	window   uint32 // what we may send
	message  []byte // the message under way
	consumed uint32 // what was received and not yet granted again
}

var datagramPool = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

func copyDatagram(b []byte) []byte {
	d := (*datagramPool.Get().(*[]byte))[:0]
	return append(d, b...)
}

func putDatagram(b []byte) {
	if cap(b) <= 8<<10 { // large ones are rare and would fill the pool
		datagramPool.Put(&b)
	}
}

// SendDatagram queues a message; if too many are waiting, it is dropped.
func (s *Session) SendDatagram(b []byte) error {
	if len(b) > MaxDatagram {
		return s.cfg.TooLarge
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.outBytes+len(b) > maxQueued || len(s.outgoing) >= 1024 {
		return nil
	}
	s.outBytes += len(b)
	s.outgoing = append(s.outgoing, copyDatagram(b))
	if s.gathering == 0 {
		s.wakeWriter()
	}
	return nil
}

// GatherDatagrams holds back what SendDatagram queues until SendGathered, which must follow, so
// that it leaves together. The writer may still send it along with other data.
func (s *Session) GatherDatagrams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathering++
}

// SendGathered sends what has been queued since GatherDatagrams.
func (s *Session) SendGathered() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gathering--
	if len(s.outgoing) > 0 {
		s.wakeWriter()
	}
}

// ReceiveDatagram waits for a message and copies it into b.
func (s *Session) ReceiveDatagram(ctx context.Context, b []byte) (int, error) {
	select {
	case d := <-s.datagrams:
		s.queuedIn.Add(-int64(len(d)))
		n := copy(b, d)
		putDatagram(d)
		return n, nil
	case <-s.done:
		return 0, s.Err()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// ServeDatagrams passes messages to handle, in order and as many as have arrived, on the goroutine
// that reads the connection, so handle must not block. The list and its messages are valid until
// handle returns. ServeDatagrams returns when the session or ctx has ended, and does not call
// handle after that. Only one call may be active at a time, and none of ReceiveDatagram alongside
// it.
func (s *Session) ServeDatagrams(ctx context.Context, handle func([][]byte)) error {
	s.serving.Lock()
	for len(s.datagrams) > 0 {
		d := <-s.datagrams
		s.queuedIn.Add(-int64(len(d)))
		handle([][]byte{d})
		putDatagram(d)
	}
	s.handle = handle
	s.serving.Unlock()
	defer func() {
		s.serving.Lock()
		s.handle = nil
		s.serving.Unlock()
	}()
	select {
	case <-s.done:
		return s.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// handBatch is how many messages are passed to handle at once.
const handBatch = 64

// datagram gathers a message for the active ServeDatagrams, or else keeps it for ReceiveDatagram
// unless too many are waiting. Only the reading goroutine calls it.
func (s *Session) datagram(b []byte) {
	s.serving.Lock()
	defer s.serving.Unlock()
	if s.handle != nil {
		if s.come = append(s.come, copyDatagram(b)); len(s.come) == handBatch {
			s.hand()
		}
		return
	}
	if s.queuedIn.Add(int64(len(b))) > maxQueued {
		s.queuedIn.Add(-int64(len(b)))
		return
	}
	d := copyDatagram(b)
	select {
	case s.datagrams <- d:
	default:
		s.queuedIn.Add(-int64(len(b)))
		putDatagram(d)
	}
}

// handDatagrams passes the gathered messages to the active ServeDatagrams before the reader may
// have to wait for more data than it has read. Only the reading goroutine calls it.
func (s *Session) handDatagrams(wanted int) {
	if len(s.come) == 0 || s.in.Buffered() >= wanted {
		return
	}
	s.serving.Lock()
	defer s.serving.Unlock()
	s.hand()
}

// hand is called with serving held.
func (s *Session) hand() {
	if s.handle != nil {
		s.handle(s.come)
	}
	for i, d := range s.come {
		putDatagram(d)
		s.come[i] = nil
	}
	s.come = s.come[:0]
}

// appendDatagram queues the frame of a datagram, or drops it if the peer's
// window has no room. It is called with mu held.
func (s *Session) appendDatagram(b []byte) {
	size := uint32(messageHeader + len(b))
	if !s.control.open || s.control.window < size+reserved || len(s.out) >= maxBatch+maxControl {
		return
	}
	if s.out == nil {
		s.out = getBatch()
	}
	s.traffic()
	s.appendMessage(messageDatagram, b)
	s.bytesSent.Add(uint64(len(b)))
}

// appendReason queues the reason for the session's end. The peer accepts it even if the frame that
// opens the control stream is still on its way. It is called with mu held.
func (s *Session) appendReason(reason string) {
	reason = reason[:min(len(reason), MaxReason)]
	if s.control.window >= uint32(messageHeader+len(reason)) {
		s.appendMessage(messageClose, []byte(reason))
	}
	s.out = appendHeader(s.out, typeGoAway, 0, 0, 0)
}

func (s *Session) appendMessage(kind uint8, b []byte) {
	size := uint32(messageHeader + len(b))
	s.control.window -= size
	s.out = appendHeader(s.out, typeData, 0, controlID, size)
	s.out = append(s.out, kind)
	s.out = binary.BigEndian.AppendUint16(s.out, uint16(len(b)))
	s.out = append(s.out, b...)
}

// controlFrame handles a frame of the control stream.
func (s *Session) controlFrame(h header) error {
	s.mu.Lock()
	if h.flags&flagSYN != 0 {
		s.control.open = true
	}
	if h.kind == typeWindow && h.length > 0 {
		if uint64(s.control.window)+uint64(h.length) >= 1<<31 {
			s.mu.Unlock()
			return protocolError("a window beyond all bounds")
		}
		s.control.window += h.length
	}
	s.mu.Unlock()
	if h.flags&(flagFIN|flagRST) != 0 {
		return protocolError("the control stream was ended")
	}
	if h.kind != typeData {
		return nil
	}
	c := &s.control
	if h.length > initialWindow-c.consumed {
		return protocolError("more bytes on the control stream than its window allows")
	}
	for left := int(h.length); left > 0; {
		want := messageHeader
		if len(c.message) >= messageHeader {
			want += int(binary.BigEndian.Uint16(c.message[1:]))
		}
		n := min(left, want-len(c.message))
		start := len(c.message)
		c.message = append(c.message, make([]byte, n)...)
		m, err := s.in.Read(c.message[start:])
		c.message = c.message[:start+m]
		left -= m
		if err != nil {
			return err
		}
		if len(c.message) >= messageHeader && len(c.message) == messageHeader+int(binary.BigEndian.Uint16(c.message[1:])) {
			s.message(c.message[0], c.message[messageHeader:])
			if c.message = c.message[:0]; cap(c.message) > 8<<10 {
				c.message = nil
			}
		}
	}
	if c.consumed += h.length; c.consumed >= initialWindow/4 {
		s.mu.Lock()
		s.appendControl(typeWindow, 0, controlID, c.consumed)
		s.mu.Unlock()
		c.consumed = 0
	}
	return nil
}

func (s *Session) message(kind uint8, b []byte) {
	switch kind {
	case messageDatagram:
		s.bytesReceived.Add(uint64(len(b)))
		s.datagram(b)
	case messageClose:
		s.end(s.cfg.PeerClosed(string(b[:min(len(b), MaxReason)])))
	}
}
