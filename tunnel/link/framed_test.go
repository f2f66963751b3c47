package link

import (
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// FuzzFramed reads what anybody may send on a detour: datagrams come out as
// they were put in, and of the right size, or the stream ends.
func FuzzFramed(f *testing.F) {
	f.Add(framed(make([]byte, minFramed)))
	f.Add(append(framed(bytes.Repeat([]byte{25}, 100)), 0, 5, 1))
	f.Add([]byte{0xff, 0xff})
	f.Fuzz(func(t *testing.T, stream []byte) {
		near, far := net.Pipe()
		c := newFramedConn(near)
		go func() {
			far.Write(stream)
			far.Close()
		}()
		var again []byte
		buf := make([]byte, maxFramed)
		for {
			n, _, err := c.ReadFrom(buf)
			if err != nil {
				if !errors.Is(err, net.ErrClosed) {
					t.Fatalf("got %v, want net.ErrClosed", err)
				}
				break
			}
			if n < minFramed || n > maxFramed {
				t.Fatalf("a datagram of %d bytes", n)
			}
			again = append(again, framed(buf[:n])...)
		}
		near.Close()
		if !bytes.HasPrefix(stream, again) {
			t.Errorf("read %d bytes that were not sent", len(again))
		}
	})
}

// TestFullFramedConnLosesInsteadOfWaiting sends to a peer that never reads.
func TestFullFramedConnLosesInsteadOfWaiting(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	c := newFramedConn(near)
	done := make(chan struct{})
	go func() { defer close(done); c.run() }()
	began := time.Now()
	for range 120 {
		if _, err := c.WriteTo(make([]byte, 4096), nil); err != nil {
			t.Fatal(err)
		}
	}
	c.mu.Lock()
	lost, waiting := c.lost, len(c.pending)
	c.mu.Unlock()
	if lost == 0 || waiting > framedQueue {
		t.Errorf("%d lost and %d bytes waiting after %v, want some lost and at most %d waiting", lost, waiting, time.Since(began), framedQueue)
	}
	c.Close()
	select {
	case <-done: // though the peer takes nothing
	case <-time.After(patience):
		t.Fatal("Close leaves the writer behind")
	}
	if _, err := far.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the peer reads %v, want the end", err)
	}
}
