package mux

import (
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// farConn is one direction's end of a path: what it writes takes its time by
// the path's rate, and arrives a delay later.
type farConn struct {
	net.Conn
	rate  float64 // bytes a second
	delay time.Duration
	way   chan parcel
	once  sync.Once
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

// TestOneStreamFillsAFarPath: a window is what a stream moves in a round trip,
// so that on a long path it must grow.
func TestOneStreamFillsAFarPath(t *testing.T) {
	const rate, size = 12e6, 240 << 20
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
				if got := size / took.Seconds(); got < 0.9*rate {
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
