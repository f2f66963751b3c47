package record

import (
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"adit/internal/udpbatch"
)

// Sizes of buffers. A datagram of the usual size is copied into a small buffer, so that a queue of
// small datagrams does not hold large buffers.
const (
	smallBuffer  = 2048
	middleBuffer = 9216
	largeBuffer  = 65535
)

// inbound is the result of one read: datagrams from one sender in one buffer. It has one owner at a
// time: the reader, the queue, then Receive until its next call.
type inbound struct {
	buf  []byte
	data []byte // what of buf is filled and not yet dealt with
	seg  int    // the size of each datagram in data but the last
	from udpbatch.Addr
	at   time.Time
	src  *socket
	// alone says that the socket had nothing else.
	alone bool
	pool  *sync.Pool
}

func newPool(size int) *sync.Pool {
	p := new(sync.Pool)
	p.New = func() any { return &inbound{buf: make([]byte, size), pool: p} }
	return p
}

var (
	smallPool  = newPool(smallBuffer)
	middlePool = newPool(middleBuffer)
	largePool  = newPool(largeBuffer)
)

func takeInbound(size int) *inbound {
	pool := largePool
	switch {
	case size <= smallBuffer:
		pool = smallPool
	case size <= middleBuffer:
		pool = middlePool
	}
	return pool.Get().(*inbound)
}

func (in *inbound) release() {
	in.data, in.src, in.from, in.alone = nil, nil, udpbatch.Addr{}, false
	in.pool.Put(in)
}

// next removes and returns the first datagram.
func (in *inbound) next() []byte {
	p := in.data[:min(in.seg, len(in.data))]
	in.data = in.data[len(p):]
	return p
}

// copyOf makes an inbound from one datagram of in.
func (in *inbound) copyOf(p []byte) *inbound {
	c := takeInbound(len(p))
	c.data = c.buf[:copy(c.buf, p)]
	c.seg, c.from, c.at, c.src = len(c.data), in.from, in.at, in.src
	return c
}

// socket is a PacketConn that is read by one goroutine.
type socket struct {
	conn   *udpbatch.Conn
	detour *detour // nil but for a detour's
}

// idleAfter is how long a socket waits with its buffers allocated. After that it waits without
// them: most sockets are idle nearly all the time.
const idleAfter = 200 * time.Millisecond

// read passes everything that arrives to deliver, which then owns it, until the socket is closed.
func (s *socket) read(deliver func(*inbound)) error {
	size := s.conn.BufferSize()
	bufs := make([]udpbatch.Buffer, 0, s.conn.Batch())
	owners := make([]*inbound, 0, cap(bufs))
	want, quiet := 1, 0
	release := func() {
		for i, in := range owners {
			in.release()
			owners[i], bufs[i] = nil, udpbatch.Buffer{}
		}
		owners, bufs = owners[:0], bufs[:0]
	}
	defer release()
	var until time.Time // the deadline
	if s.conn.CanWait() {
		until = time.Now().Add(idleAfter)
		_ = s.conn.SetReadDeadline(until)
	}
	for {
		for len(bufs) < want {
			in := takeInbound(size)
			owners = append(owners, in)
			bufs = append(bufs, udpbatch.Buffer{B: in.buf})
		}
		n, err := s.conn.ReadBatch(bufs)
		if errors.Is(err, os.ErrDeadlineExceeded) && s.conn.CanWait() {
			release()
			want, quiet = 1, 0
			_ = s.conn.SetReadDeadline(time.Time{})
			if err = s.conn.WaitRead(); err == nil {
				until = time.Now().Add(idleAfter)
				_ = s.conn.SetReadDeadline(until)
				continue
			}
		}
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if !until.IsZero() && until.Sub(now) < idleAfter/2 {
			until = now.Add(idleAfter)
			_ = s.conn.SetReadDeadline(until)
		}
		// A busy socket gets more buffers, and gives them back after a while.
		if n == len(bufs) {
			want, quiet = min(2*want, cap(bufs)), 0
		} else if quiet++; quiet > 64 {
			want, quiet = max(want/2, 1), 0
		}
		for i := 0; i < n; {
			b := &bufs[i]
			in := owners[i]
			joined, total := join(bufs[i:n])
			switch {
			case b.N == 0:
				i++
				continue
			case total <= smallBuffer || joined > 1:
				in = takeInbound(total)
				at := 0
				for _, one := range bufs[i : i+joined] {
					at += copy(in.buf[at:], one.B[:one.N])
				}
			default:
				owners[i] = takeInbound(size)
				b.B = owners[i].buf
			}
			in.data, in.seg, in.from, in.at, in.src = in.buf[:total], b.Segment, b.Addr, now, s
			in.alone = i == 0 && joined == n && n < len(bufs)
			deliver(in)
			i += joined
		}
		for len(bufs) > want {
			last := len(bufs) - 1
			owners[last].release()
			owners[last], bufs[last] = nil, udpbatch.Buffer{}
			owners, bufs = owners[:last], bufs[:last]
		}
	}
}

// join counts the buffers at the start that hold one small datagram each, from one sender and of
// one size (the last may be shorter): they are delivered as one, as GRO would have done.
func join(bufs []udpbatch.Buffer) (joined, total int) {
	first := &bufs[0]
	joined, total = 1, first.N
	if first.N > smallBuffer || first.Segment != first.N {
		return joined, total
	}
	for joined < len(bufs) {
		b := &bufs[joined]
		if b.N == 0 || b.N > first.N || b.Segment != b.N || total+b.N > largeBuffer ||
			b.Addr.AddrPort != first.Addr.AddrPort || bufs[joined-1].N < first.N {
			break
		}
		total += b.N
		joined++
	}
	return joined, total
}
