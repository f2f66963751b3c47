package bare

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"

	"adit/internal/udpbatch"
)

// A frame is a header and its bytes. The header is the stream's or flow's
// number (four bytes), the kind (one) and how many bytes follow (three).
const headerSize = 8

const (
	kindOpen     = iota // a new stream, and its first bytes
	kindData            // more of it
	kindEnd             // no more of it in this direction
	kindReset           // no more of it at all
	kindDatagram        // of a flow
)

func putHeader(b []byte, id uint32, kind byte, size int) {
	binary.LittleEndian.PutUint32(b, id)
	binary.LittleEndian.PutUint32(b[4:], uint32(kind)|uint32(size)<<8)
}

// What is written at most at once. As much is read of a stream, header and all.
const (
	mostTCP = 256 << 10
	mostUDP = 56 << 10 // one datagram, which loopback takes whole
)

// end is one of the link's two ends. What comes over the link is read by one
// goroutine, which writes it to where it goes by itself; what goes is written by
// whoever has it.
type end struct {
	link   io.ReadWriteCloser // Write takes whole frames
	most   int
	origin *Addrs // nil at the relay

	mu      sync.Mutex // guards what is to be sent
	room    sync.Cond
	writing bool   // somebody writes, and will write waiting too
	waiting []byte // frames
	spare   []byte // the other of two
	err     error

	open    atomic.Int32 // streams
	streams table[*stream]
	flows   table[flow]
	running sync.WaitGroup

	// The reader's: datagrams that came together, and their flow.
	together [][]byte
	goTo     uint32
}

func newEnd(link io.ReadWriteCloser, most int) *end {
	e := &end{link: link, most: most}
	e.room.L = &e.mu
	return e
}

// send writes frames, behind what others wrote before. Where there are many
// streams it lets others go first who have something small to send, so that all
// of it leaves with one call.
func (e *end) send(frames []byte) error {
	alone := len(frames) > 4<<10 || e.open.Load() < 2
	e.mu.Lock()
	for e.err == nil && e.writing && len(e.waiting)+len(frames) > e.most {
		e.room.Wait()
	}
	if e.err != nil || e.writing {
		defer e.mu.Unlock()
		e.waiting = append(e.waiting, frames...)
		return e.err
	}
	e.writing = true
	if alone {
		e.write(frames)
	} else {
		e.waiting = append(e.waiting, frames...)
		e.mu.Unlock()
		runtime.Gosched()
		e.mu.Lock()
	}
	for len(e.waiting) > 0 && e.err == nil {
		now := e.waiting
		e.waiting = e.spare[:0]
		e.write(now)
		e.spare = now
	}
	e.writing = false
	err := e.err
	e.room.Broadcast()
	e.mu.Unlock()
	return err
}

// write writes with mu given back meanwhile.
func (e *end) write(b []byte) {
	e.mu.Unlock()
	_, err := e.link.Write(b)
	e.mu.Lock()
	if e.err == nil {
		e.err = err
	}
	e.room.Broadcast()
}

// run takes what comes until the link ends, or ctx.
func (e *end) run(ctx context.Context) error {
	defer e.close()
	defer context.AfterFunc(ctx, e.close)()
	return ended(ctx, e.receive())
}

// receive reads frames until the link ends, and hands each on. Of a stream also
// what is there of a frame that has not all come.
func (e *end) receive() error {
	buf := make([]byte, mostTCP)
	have := 0
	var id uint32
	left := 0 // of a frame of stream id
	for {
		n, err := e.link.Read(buf[have:])
		if err != nil {
			return err
		}
		b := buf[:have+n]
		for {
			part := min(left, len(b))
			if part > 0 {
				e.stream(kindData, id, b[:part])
				b, left = b[part:], left-part
			}
			if left > 0 || len(b) < headerSize {
				break
			}
			id = binary.LittleEndian.Uint32(b)
			kind, size := b[4], int(binary.LittleEndian.Uint32(b[4:])>>8)
			if kind == kindDatagram {
				if len(b) < headerSize+size {
					break
				}
				e.datagram(id, b[headerSize:headerSize+size])
				b = b[headerSize+size:]
				continue
			}
			b = b[headerSize:]
			part = min(size, len(b))
			e.stream(kind, id, b[:part])
			b, left = b[part:], size-part
		}
		e.sendTogether()
		have = copy(buf, b)
	}
}

// close ends the link and all that goes over it.
func (e *end) close() {
	e.link.Close()
	for _, s := range e.streams.end() {
		s.mu.Lock()
		e.finish(s)
		s.mu.Unlock()
	}
	for _, f := range e.flows.end() {
		f.conn.Close()
	}
}

// packetLink is a link whose every write is a datagram.
type packetLink struct {
	conn *udpbatch.Conn
	in   [1]udpbatch.Buffer
	out  [1][]byte
}

func packets(conn *net.UDPConn) *packetLink {
	return &packetLink{conn: udpbatch.New(conn, udpbatch.Options{NoOffload: true})}
}

func (l *packetLink) Read(b []byte) (int, error) {
	l.in[0].B = b
	_, err := l.conn.ReadBatch(l.in[:])
	return l.in[0].N, err
}

func (l *packetLink) Write(b []byte) (int, error) {
	l.out[0] = b
	return len(b), l.conn.WriteBatch(l.out[:], udpbatch.Addr{})
}

func (l *packetLink) Close() error { return l.conn.Close() }

// table has what the numbers of frames mean.
type table[T any] struct {
	mu    sync.RWMutex
	m     map[uint32]T
	ended bool
}

func (t *table[T]) get(id uint32) (T, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	v, ok := t.m[id]
	return v, ok
}

// add reports false once the table has ended.
func (t *table[T]) add(id uint32, v T) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.m == nil {
		t.m = map[uint32]T{}
	}
	if !t.ended {
		t.m[id] = v
	}
	return !t.ended
}

func (t *table[T]) remove(id uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, id)
}

// end returns what is there and takes no more.
func (t *table[T]) end() map[uint32]T {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.m
	t.m, t.ended = nil, true
	return m
}
