package sockio

import (
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"adit/internal/lend"
)

// holding is a server that answers each byte in two parts, the second of which its
// system holds back until the first is acknowledged.
func holding(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.(*net.TCPConn).SetNoDelay(false)
				for one := make([]byte, 1); ; {
					if _, err := io.ReadFull(conn, one); err != nil {
						return
					}
					conn.Write([]byte("the head "))
					conn.Write([]byte("and the body"))
				}
			}()
		}
	}()
	return ln.Addr().String()
}

// rounds asks a few times, by one connection, and returns how long the answers took at
// the median of those that come after the first: a system acknowledges at once where a
// connection is new.
func rounds(t *testing.T, addr string, read func(c *Conn, b []byte) (int, error), peer *Peer) time.Duration {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := New(conn.(*net.TCPConn))
	defer c.Close()
	if peer != nil {
		c.LearnOf(peer)
	}
	var took []time.Duration
	for range 25 {
		begin := time.Now()
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 0, 64)
		for len(got) < len("the head and the body") {
			n, err := read(c, got[len(got):cap(got)])
			if err != nil {
				t.Fatal(err)
			}
			got = got[:len(got)+n]
		}
		if string(got) != "the head and the body" {
			t.Fatalf("got %q", got)
		}
		took = append(took, time.Since(begin))
	}
	took = took[5:]
	slices.Sort(took)
	return took[len(took)/2]
}

// TestPeersThatHoldPartsBackAreAcknowledgedAtOnce, after one answer from which that is
// learned; beside connections that leave it to the system.
func TestPeersThatHoldPartsBackAreAcknowledgedAtOnce(t *testing.T) {
	var mem lend.Buffer
	defer mem.Return()
	for how, read := range map[string]func(*Conn, []byte) (int, error){
		"Read": (*Conn).Read,
		"ReadLent": func(c *Conn, b []byte) (int, error) {
			n, err := c.ReadLent(&mem)
			return copy(b, mem.Lend()[:n]), err
		},
	} {
		addr := holding(t)
		system := rounds(t, addr, read, nil)
		if system < shortest {
			t.Skipf("this system acknowledges after %v by itself", system)
		}
		peer := new(Peer)
		learned := rounds(t, addr, read, peer)
		if learned > system/2 || !peer.holds.Load() {
			t.Errorf("%s: an answer takes %v, and %v where the system decides; the peer is known to hold parts back: %v", how, learned, system, peer.holds.Load())
		}
		if known := rounds(t, addr, read, peer); known > system/2 {
			t.Errorf("%s: an answer to another connection takes %v", how, known)
		}
	}
}

// TestWaitsThatAreNoSignOfParts: of a whole answer that takes its time, and of the next
// question.
func TestWaitsThatAreNoSignOfParts(t *testing.T) {
	for what, do := range map[string]func(a *acks){
		"nothing was read before": func(a *acks) { a.wrote(); a.wait(0); a.waits -= shortest; a.came(1) },
		"something was written before": func(a *acks) {
			a.came(1)
			a.wrote()
			a.wait(0)
			a.came(1)
		},
		"something was written meanwhile": func(a *acks) { a.came(1); a.wait(0); a.waits -= shortest; a.wrote(); a.came(1) },
		"it was the end":                  func(a *acks) { a.came(1); a.wait(0); a.waits -= shortest; a.came(0) },
		"it was short":                    func(a *acks) { a.came(1); a.wait(0); a.came(1) },
		"it was long":                     func(a *acks) { a.came(1); a.wait(0); a.waits -= longest; a.came(1) },
	} {
		a := &acks{peer: new(Peer)}
		do(a)
		if a.peer.holds.Load() {
			t.Errorf("%s, and it is taken for a part that was held back", what)
		}
	}
	a := &acks{peer: new(Peer)}
	a.wrote()
	a.came(1)
	a.wait(0)
	a.waits -= shortest
	if a.came(1); !a.peer.holds.Load() {
		t.Error("a part that was held back is not taken for one")
	}
}
