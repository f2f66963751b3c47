package reliable

import (
	"context"
	"sync"
)

const (
	// datagramQueue limits the datagrams waiting in one direction, in number and in bytes; the
	// oldest make room for the newest.
	datagramQueue = 1024
	datagramBytes = 1 << 20
	smallDatagram = 2 << 10
	// handBatch is how many datagrams are passed to handle at once.
	handBatch = 64
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallDatagram]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([maxDatagram]byte) }}
)

// datagrams is a bounded queue of messages in pooled buffers.
type datagrams struct {
	list  [][]byte // a ring once it has grown
	first int
	n     int
	bytes int
}

func buffered(data []byte) []byte {
	if len(data) <= smallDatagram {
		b := smallBuffers.Get().(*[smallDatagram]byte)
		return b[:copy(b[:], data)]
	}
	b := largeBuffers.Get().(*[maxDatagram]byte)
	return b[:copy(b[:], data)]
}

func unbuffer(b []byte) {
	switch cap(b) {
	case smallDatagram:
		smallBuffers.Put((*[smallDatagram]byte)(b[:smallDatagram]))
	case maxDatagram:
		largeBuffers.Put((*[maxDatagram]byte)(b[:maxDatagram]))
	}
}

// push queues a copy of data. If there is no room, the oldest is dropped, or data itself.
func (d *datagrams) push(data []byte, dropOldest bool) {
	if len(data) > maxDatagram {
		return
	}
	for d.n >= datagramQueue || d.bytes+len(data) > datagramBytes {
		if !dropOldest {
			return
		}
		unbuffer(d.pop())
	}
	if d.n == len(d.list) {
		bigger := make([][]byte, max(16, 2*d.n))
		for i := range d.n {
			bigger[i] = d.list[(d.first+i)%d.n]
		}
		d.list, d.first = bigger, 0
	}
	d.list[(d.first+d.n)%len(d.list)] = buffered(data)
	d.n++
	d.bytes += len(data)
}

func (d *datagrams) front() []byte { return d.list[d.first] }

// pop returns the oldest datagram to the caller, who passes it to unbuffer.
func (d *datagrams) pop() []byte {
	b := d.list[d.first]
	d.list[d.first] = nil
	d.first = (d.first + 1) % len(d.list)
	d.n--
	d.bytes -= len(b)
	return b
}

// datagramHeader is the maximum overhead of a DATAGRAM frame.
const datagramHeader = 1 + 2

// MaxDatagram returns the size of the largest message that SendDatagram accepts now.
func (s *Session) MaxDatagram() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.payload - datagramHeader
}

// SendDatagram queues one unreliable message. If too many messages are waiting, the oldest are
// dropped.
func (s *Session) SendDatagram(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case len(b) > s.payload-datagramHeader:
		return ErrDatagramTooLarge
	}
	s.outbox.push(b, true)
	if s.gathering == 0 {
		s.wake()
	}
	return nil
}

// GatherDatagrams holds back what SendDatagram queues until SendGathered, which must follow, so
// that it leaves together. The sender may still send it along with other data.
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
	if s.outbox.n > 0 {
		s.wake()
	}
}

// ReceiveDatagram waits for one message and copies it into b, truncating it if it does not fit.
func (s *Session) ReceiveDatagram(ctx context.Context, b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.wait(ctx, &s.arriving, func() bool { return s.inbox.n > 0 }); err != nil {
		return 0, err
	}
	data := s.inbox.pop()
	n := copy(b, data)
	unbuffer(data)
	return n, nil
}

// ServeDatagrams passes messages to handle, in order and as many as have arrived, on the goroutine
// that reads them, so handle must not block. The list and its messages are valid until handle
// returns. ServeDatagrams returns when the session or ctx has ended, and does not call handle after
// that. Only one call may be active at a time, and none of ReceiveDatagram alongside it.
func (s *Session) ServeDatagrams(ctx context.Context, handle func([][]byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = handle
	s.handDatagrams()
	err := s.wait(ctx, &s.arriving, func() bool { return false })
	s.handle = nil
	for s.handling {
		s.arriving.Wait()
	}
	return err
}

// handDatagrams passes received datagrams to the active ServeDatagrams. The caller holds mu, which
// is released in between; datagrams that arrive then are passed on by the same goroutine.
func (s *Session) handDatagrams() {
	if s.handle == nil || s.handling {
		return
	}
	s.handling = true
	for s.inbox.n > 0 && s.handle != nil && s.err == nil {
		handle, list := s.handle, s.handed[:0]
		for s.inbox.n > 0 && len(list) < handBatch {
			list = append(list, s.inbox.pop())
		}
		s.handed = list
		s.mu.Unlock()
		handle(list)
		for i, data := range list {
			unbuffer(data)
			list[i] = nil
		}
		s.mu.Lock()
	}
	s.handling = false
	if s.handle == nil {
		s.arriving.Broadcast()
	}
}
