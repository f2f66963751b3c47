package reliable

import (
	"context"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// pipe is a carrier in memory: batches move through a channel of slabs, as
// large as the kernel's socket buffers, and are dropped when it is full.
type pipe struct {
	next      atomic.Uint64
	out, in   chan *slab
	free      chan *slab // of what this side sends
	give      chan *slab // of what it receives
	last      *slab
	taken, at int // packets and bytes of last that were received
	closed    chan struct{}
	once      *sync.Once
	dropped   *atomic.Uint64
}

type slab struct {
	data  [96 << 10]byte
	sizes [sendBatch]int
	n     int
	first uint64
}

func newPipes(depth int) (*pipe, *pipe) {
	there, back := make(chan *slab, depth), make(chan *slab, depth)
	freeA, freeB := make(chan *slab, depth), make(chan *slab, depth)
	for range depth {
		freeA <- new(slab)
		freeB <- new(slab)
	}
	closed, once, dropped := make(chan struct{}), new(sync.Once), new(atomic.Uint64)
	a := &pipe{out: there, in: back, free: freeA, give: freeB, closed: closed, once: once, dropped: dropped}
	b := &pipe{out: back, in: there, free: freeB, give: freeA, closed: closed, once: once, dropped: dropped}
	return a, b
}

func (p *pipe) Room() (int, int)             { return plainHead, plainTail }
func (p *pipe) MaxPayload(d int) int         { return d - plainHead - plainTail }
func (p *pipe) PathChanged() <-chan struct{} { return nil }
func (p *pipe) NextNumber() uint64           { return p.next.Load() }
func (p *pipe) Close() error                 { p.once.Do(func() { close(p.closed) }); return nil }

func (p *pipe) Send(packets [][]byte) (uint64, error) {
	first := p.next.Add(uint64(len(packets))) - uint64(len(packets))
	select {
	case s := <-p.free:
		s.n, s.first = len(packets), first
		at := 0
		for i, b := range packets {
			s.sizes[i] = len(b)
			at += copy(s.data[at:], b)
		}
		p.out <- s
	default:
		p.dropped.Add(uint64(len(packets)))
	}
	return first, nil
}

func (p *pipe) Receive(into []Packet) (int, error) {
	if p.last != nil && p.taken == p.last.n {
		p.give <- p.last
		p.last = nil
	}
	if p.last == nil {
		select {
		case p.last = <-p.in:
			p.taken, p.at = 0, 0
		case <-p.closed:
			return 0, net.ErrClosed
		}
	}
	s, n := p.last, 0
	for ; n < len(into) && p.taken < s.n; n++ {
		size := s.sizes[p.taken]
		into[n] = Packet{Number: s.first + uint64(p.taken), Data: s.data[p.at+plainHead : p.at+size-plainTail]}
		p.taken, p.at = p.taken+1, p.at+size
	}
	return n, nil
}

// BenchmarkBulk moves a bulk stream through memory: what this package itself
// costs, without sealing and without the kernel.
func BenchmarkBulk(b *testing.B) {
	for _, c := range []Congestion{BBR, CUBIC} {
		b.Run(string(c), func(b *testing.B) { benchBulk(b, c, 0) })
	}
	b.Run("ethernet", func(b *testing.B) { benchBulk(b, BBR, 1472) })
}

func benchBulk(b *testing.B, c Congestion, datagram int) {
	carA, carB := newPipes(16)
	var ca, cb Carrier = carA, carB
	if datagram > 0 {
		ca, cb = bounded{carA, datagram}, bounded{carB, datagram}
	}
	s, r := New(ca, Config{Initiator: true, Congestion: c}), New(cb, Config{Congestion: c})
	defer s.Close("")
	defer r.Close("")
	st, err := s.OpenStream(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	chunk := make([]byte, 64<<10)
	go func() { // until windows and sizes have grown
		for range 512 {
			st.Write(chunk)
		}
	}()
	in, err := r.AcceptStream(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 64<<10)
	if _, err := io.CopyN(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{in}, 512*64<<10); err != nil {
		b.Fatal(err)
	}
	var before, after runtime.MemStats
	packets, lost := s.Stats().PacketsSent, s.Stats().PacketsLost
	b.SetBytes(int64(len(chunk)))
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range b.N {
			if _, err := st.Write(chunk); err != nil {
				b.Error(err)
				return
			}
		}
	})
	for left := b.N * len(chunk); left > 0; {
		n, err := in.Read(buf)
		if err != nil {
			b.Fatal(err)
		}
		left -= n
	}
	wg.Wait()
	b.StopTimer()
	runtime.ReadMemStats(&after)
	sent := s.Stats().PacketsSent - packets
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/float64(max(sent, 1)), "allocs/pkt")
	b.ReportMetric(float64(s.Stats().PacketsLost-lost)/float64(max(sent, 1))*100, "%lost")
	b.ReportMetric(float64(s.Stats().Datagram), "datagram")
	b.ReportMetric(float64(s.Stats().RTT)/float64(time.Microsecond), "rtt-µs")
}

// bounded is a carrier over a path with an MTU.
type bounded struct {
	*pipe
	mtu int
}

func (c bounded) Send(packets [][]byte) (uint64, error) {
	if len(packets[0]) > c.mtu {
		return c.next.Add(uint64(len(packets))) - uint64(len(packets)), nil
	}
	return c.pipe.Send(packets)
}
