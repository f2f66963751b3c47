package mux

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// farConn is one direction's end of a path: what it writes takes its time by
// the path's rate, and arrives a delay later.
type farConn struct {
	net.Conn
	rate   float64 // bytes a second
	delay  time.Duration
	way    chan parcel
	once   sync.Once
	unsent atomic.Int64
}

type parcel struct {
	b  []byte
	at time.Time
}

// far makes a path's two ends: rate in bytes a second, rtt there and back.
func far(rate float64, rtt time.Duration) (net.Conn, net.Conn) {
	a, b := net.Pipe()
	return newFarConn(a, rate, rtt/2), newFarConn(b, rate, rtt/2)
}

func newFarConn(conn net.Conn, rate float64, delay time.Duration) *farConn {
	c := &farConn{Conn: conn, rate: rate, delay: delay, way: make(chan parcel, 1<<16)}
	go func() {
		for p := range c.way {
			time.Sleep(time.Until(p.at))
			if _, err := conn.Write(p.b); err != nil {
				conn.Close()
			}
		}
		conn.Close()
	}()
	return c
}

func (c *farConn) Write(b []byte) (int, error) {
	time.Sleep(time.Duration(float64(len(b)) / c.rate * float64(time.Second)))
	c.way <- parcel{append([]byte(nil), b...), time.Now().Add(c.delay)}
	return len(b), nil
}

func (c *farConn) SetDeadline(t time.Time) error { return c.Conn.SetReadDeadline(t) }

func (c *farConn) CloseWrite() error {
	c.once.Do(func() { close(c.way) })
	return nil
}

func (c *farConn) Close() error {
	c.CloseWrite()
	return c.Conn.Close()
}

// eagerFar is a farConn over a system's buffer, which takes what LimitUnsent allows
// before it is sent.
type eagerFar struct {
	*farConn
	mu   sync.Mutex
	sent time.Time // when all that the buffer has will be
	rest []byte
}

// room is how many bytes the buffer takes now. It is called with mu held.
func (c *eagerFar) room() int {
	if now := time.Now(); c.sent.Before(now) {
		c.sent = now
	}
	return int(c.unsent.Load()) - int(time.Until(c.sent).Seconds()*c.rate)
}

// take moves into the buffer what it has room for of b, and returns the rest. It
// is called with mu held.
func (c *eagerFar) take(b []byte) []byte {
	n := min(len(b), max(0, c.room()))
	c.sent = c.sent.Add(time.Duration(float64(n) / c.rate * float64(time.Second)))
	if n > 0 {
		c.way <- parcel{append([]byte(nil), b[:n]...), c.sent.Add(c.delay)}
	}
	return b[n:]
}

func (c *eagerFar) WriteNow(b []byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rest = append(c.rest, c.take(b)...)
	return len(c.rest) > 0, nil
}

func (c *eagerFar) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.rest) > 0 {
		if c.rest = c.take(c.rest); len(c.rest) > 0 {
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}

func (c *eagerFar) Write(b []byte) (int, error) {
	_, err := c.WriteNow(b)
	if err == nil {
		err = c.Flush()
	}
	return len(b), err
}

// TestOneStreamFillsAFarPath: a window is what a stream moves in a round trip,
// so that on a long path it must grow.
func TestOneStreamFillsAFarPath(t *testing.T) {
	const rate, size = 12e6, 120 << 20
	for _, rtt := range []time.Duration{time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond} {
		t.Run(rtt.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := far(rate, rtt)
				client, server := New(a, config(true)), New(b, config(false))
				go func() {
					st, err := client.OpenStream(t.Context())
					if err != nil {
						return
					}
					chunk := make([]byte, 64<<10)
					for range size / len(chunk) {
						if _, err := st.Write(chunk); err != nil {
							return
						}
					}
					st.CloseWrite()
				}()
				st, err := server.AcceptStream(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				n, err := io.Copy(io.Discard, st)
				if n != size || err != nil {
					t.Fatalf("got %d bytes and %v, want %d", n, err, size)
				}
				took := time.Since(start)
				if got := size / took.Seconds(); got < 0.75*rate {
					t.Errorf("%.1f MB/s, want nearly %.1f", got/1e6, rate/1e6)
				}
				st.Close()
				client.Close("over")
				server.Close("")
				time.Sleep(rtt) // what is under way arrives
			})
		})
	}
}

// LimitUnsent notes what it is told: nothing ever waits in a farConn.
func (c *farConn) LimitUnsent(bytes int) { c.unsent.Store(int64(bytes)) }

// TestSmallRequestsPassBulkOnASlowPath: what is handed to the connection at
// once is what a small answer waits behind.
func TestSmallRequestsPassBulkOnASlowPath(t *testing.T) {
	const rate, rtt = 500e3, 20 * time.Millisecond
	t.Run("written by the writer", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := far(rate, rtt)
			smallBesideBulk(t, a, b, rate, rtt, 30*time.Millisecond)
		})
	})
	t.Run("written at once", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			a, b := far(rate, rtt)
			smallBesideBulk(t, &eagerFar{farConn: a.(*farConn)}, &eagerFar{farConn: b.(*farConn)}, rate, rtt, 40*time.Millisecond) // a batch more waits in the buffer
		})
	})
}

func smallBesideBulk(t *testing.T, a, b net.Conn, rate float64, rtt, more time.Duration) {
	client, server := New(a, config(true)), New(b, config(false))
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // the server: the first stream gets bulk, the second what it asks
		bulk, err := server.AcceptStream(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		wg.Go(func() {
			for {
				if _, err := bulk.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		})
		echo, err := server.AcceptStream(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		io.Copy(echo, echo)
	})
	bulk, err := client.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bulk.Write([]byte("begin"))
	wg.Go(func() {
		n, _ := io.Copy(io.Discard, bulk)
		<-over
		if float64(n) < 4*rate {
			t.Errorf("%d bytes of bulk in five seconds, want nearly all of what the path carries", n)
		}
	})
	time.Sleep(2 * time.Second)
	echo, err := client.OpenStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var longest time.Duration
	for range 30 {
		start := time.Now()
		if _, err := echo.Write([]byte("small")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(echo, make([]byte, 5)); err != nil {
			t.Fatal(err)
		}
		longest = max(longest, time.Since(start))
		time.Sleep(70 * time.Millisecond)
	}
	if longest > rtt+more {
		t.Errorf("the slowest of 30 small requests took %v beside bulk, of which the path takes %v", longest, rtt)
	}
	if got := unsentOf(b); got != minBatch {
		t.Errorf("%d bytes may wait in the system, want %d", got, minBatch)
	}
	close(over)
	client.Close("over")
	server.Close("")
	wg.Wait()
	time.Sleep(rtt)
}

func unsentOf(c net.Conn) int64 {
	if eager, ok := c.(*eagerFar); ok {
		return eager.unsent.Load()
	}
	return c.(*farConn).unsent.Load()
}

// TestFastPathsGetLargeBatches: a machine that stood still once, and visitors
// who have little to send, change nothing for long.
func TestFastPathsGetLargeBatches(t *testing.T) {
	p := pace{batch: newBatch}
	write := func(times int, took time.Duration) {
		for range times {
			p.wrote(p.batch, took)
		}
	}
	write(100, 100*time.Microsecond)
	if p.batch != maxBatch || p.unsent() != MaxUnsent {
		t.Fatalf("batches of %d on a fast path, %d unsent", p.batch, p.unsent())
	}
	write(1, 50*time.Millisecond)
	if p.batch != maxBatch/2 {
		t.Errorf("batches of %d after the machine stood still once, want %d", p.batch, maxBatch/2)
	}
	write(20, 100*time.Microsecond)
	if p.batch != maxBatch {
		t.Errorf("batches of %d on a fast path again", p.batch)
	}
	write(50, 50*time.Millisecond)
	if p.batch > 8<<10 {
		t.Errorf("batches of %d at 1 MB/s", p.batch)
	}
	slow := p.batch
	for range 1000 {
		p.wrote(slow-1, 10*time.Microsecond)
	}
	if p.batch != slow {
		t.Errorf("batches of %d after small writes, want still %d", p.batch, slow)
	}
}
