package reliable

import (
	"context"
	"encoding/binary"
	"io"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// plain is a carrier that seals nothing: a number in front of each packet, and
// as much room as a DTLS record with a Connection ID takes. It follows the
// address of the newest packet.
type plain struct {
	conn    *simnet.Conn
	next    atomic.Uint64
	changed chan struct{}

	mu     sync.Mutex
	peer   netip.AddrPort
	newest uint64
	seen   map[uint64]bool
	buf    []byte
	steal  func() uint64 // numbers that the carrier's own packets take before a Send
}

// setSteal is for a carrier that a session sends on already.
func (p *plain) setSteal(steal func() uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steal = steal
}

const plainHead, plainTail = 29, 17

func newPlain(conn *simnet.Conn, peer string) *plain {
	return &plain{
		conn:    conn,
		peer:    netip.MustParseAddrPort(peer),
		changed: make(chan struct{}, 1),
		seen:    make(map[uint64]bool),
		buf:     make([]byte, 64<<10),
	}
}

func (p *plain) Room() (int, int)             { return plainHead, plainTail }
func (p *plain) MaxPayload(d int) int         { return d - plainHead - plainTail }
func (p *plain) PathChanged() <-chan struct{} { return p.changed }
func (p *plain) NextNumber() uint64           { return p.next.Load() }
func (p *plain) Close() error                 { return p.conn.Close() }
func (p *plain) signal() {
	select {
	case p.changed <- struct{}{}:
	default:
	}
}

func (p *plain) Send(packets [][]byte) (uint64, error) {
	p.mu.Lock()
	peer := p.peer
	if p.steal != nil {
		p.next.Add(p.steal())
	}
	p.mu.Unlock()
	first := p.next.Add(uint64(len(packets))) - uint64(len(packets))
	for i, b := range packets {
		binary.BigEndian.PutUint64(b, first+uint64(i))
		if _, err := p.conn.WriteToAddrPort(b, peer); err != nil {
			return first, err
		}
	}
	return first, nil
}

func (p *plain) Receive(into []Packet) (int, error) {
	for {
		n, from, err := p.conn.ReadFromAddrPort(p.buf)
		if err != nil {
			return 0, err
		}
		number := binary.BigEndian.Uint64(p.buf)
		if n < plainHead+plainTail || p.seen[number] {
			continue
		}
		p.seen[number] = true
		delete(p.seen, number-min(number, 1<<16))
		if number >= p.newest {
			p.newest = number
			p.mu.Lock()
			moved := p.peer != from
			p.peer = from
			p.mu.Unlock()
			if moved {
				p.signal()
			}
		}
		into[0] = Packet{Number: number, Data: p.buf[plainHead : n-plainTail]}
		return 1, nil
	}
}

// world is two sessions over a simulated network, within a bubble.
type world struct {
	t            *testing.T
	net          *simnet.Network
	there, back  *simnet.Link // from a to b, and back
	a, b         *Session
	connA, connB *simnet.Conn
	carA, carB   *plain
}

// inBubble runs a test in virtual time and checks that no goroutine is left.
func inBubble(t *testing.T, path simnet.Path, cfg Config, test func(w *world)) {
	t.Helper()
	inBubbleBetween(t, path, cfg, cfg, test)
}

func inBubbleBetween(t *testing.T, path simnet.Path, cfgA, cfgB Config, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, net: simnet.New(1)}
		w.there, w.back = w.net.Pair(path)
		w.net.Join("10.0.0.1", "10.0.0.2", w.there, w.back)
		w.connA, _ = w.net.Listen("10.0.0.1:1000")
		w.connB, _ = w.net.Listen("10.0.0.2:2000")
		w.carA, w.carB = newPlain(w.connA, "10.0.0.2:2000"), newPlain(w.connB, "10.0.0.1:1000")
		cfgA.Initiator, cfgB.Initiator = true, false
		w.a, w.b = New(w.carA, cfgA), New(w.carB, cfgB)
		defer func() { // also when the test gives up
			w.a.Close("test over")
			w.b.Close("test over")
			w.net.Close()
			synctest.Wait()
			checkGoroutines(t)
		}()
		test(w)
	})
}

// checkGoroutines fails the test if a goroutine of the session is left. (A
// bubble also ends with a panic if one is blocked for ever.)
func checkGoroutines(t *testing.T) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "reliable.(*Session)") {
			t.Errorf("goroutine left after Close:\n%s", g)
		}
	}
}

// pattern fills b with bytes that tell their place in stream id.
func pattern(b []byte, id, off uint64) {
	for i := range b {
		o := off + uint64(i)
		b[i] = byte(o ^ o>>8*31 ^ id*7)
	}
}

type patternReader struct{ id, off, left uint64 }

func (r *patternReader) Read(b []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n := min(uint64(len(b)), r.left)
	pattern(b[:n], r.id, r.off)
	r.off += n
	r.left -= n
	return int(n), nil
}

// verify reads size bytes of a pattern to the end of the stream.
func verify(t *testing.T, r io.Reader, id, size uint64) {
	t.Helper()
	got, want := make([]byte, 64<<10), make([]byte, 64<<10)
	var off uint64
	for {
		n, err := r.Read(got)
		pattern(want[:n], id, off)
		if string(got[:n]) != string(want[:n]) {
			t.Errorf("stream %d: wrong bytes between %d and %d", id, off, off+uint64(n))
			return
		}
		off += uint64(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Errorf("stream %d: %v after %d of %d bytes", id, err, off, size)
			return
		}
	}
	if off != size {
		t.Errorf("stream %d: got %d bytes, want %d", id, off, size)
	}
}

// transfer moves size checked bytes from one session to the other on a new
// stream, and returns how long that took.
func transfer(t *testing.T, from, to *Session, size uint64) time.Duration {
	t.Helper()
	began := time.Now()
	st, err := from.OpenStream(context.Background())
	if err != nil {
		t.Error(err)
		return 0
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := io.CopyBuffer(struct{ io.Writer }{st}, &patternReader{id: st.ID(), left: size}, make([]byte, 64<<10)); err != nil {
			t.Errorf("write: %v", err)
		}
		st.CloseWrite()
	})
	in, err := to.AcceptStream(context.Background())
	if err != nil {
		t.Error(err)
	} else {
		verify(t, in, in.ID(), size)
		in.Close()
	}
	wg.Wait()
	st.Close()
	return time.Since(began)
}
