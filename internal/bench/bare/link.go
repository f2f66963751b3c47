package bare

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
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

// end is one of the link's two ends. What comes over the link is read by one
// goroutine, which writes it to where it goes by itself; what goes is written by
// whoever has it.
type end struct {
	link   io.ReadWriteCloser // Write takes whole frames
	most   int                // bytes, in one write and in one frame
	origin *Addrs             // nil at the relay

	mu      sync.Mutex // guards what is to be sent
	room    sync.Cond
	writing bool   // somebody writes, and will write waiting too
	waiting []byte // frames
	spare   []byte // the other of two
	err     error

	tables  sync.Mutex // guards what the numbers of frames mean
	streams map[uint32]*stream
	flows   map[uint32]flow
	ended   bool // no more of either

	open    atomic.Int32 // streams
	running sync.WaitGroup

	// The reader's: datagrams that came together, and their flow.
	together [][]byte
	goTo     uint32
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
	buf := make([]byte, e.most)
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
	e.tables.Lock()
	e.ended = true
	streams := maps.Clone(e.streams)
	for _, f := range e.flows {
		f.conn.Close()
	}
	e.tables.Unlock()
	for _, s := range streams {
		s.mu.Lock()
		e.finish(s)
		s.mu.Unlock()
	}
}

// packetLink is a link whose every write is a datagram.
type packetLink struct {
	conn *udpbatch.Conn
	in   [1]udpbatch.Buffer
	out  [1][]byte
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
