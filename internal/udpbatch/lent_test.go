package udpbatch

import (
	"bytes"
	"errors"
	"net"
	"testing"
	"time"

	"adit/internal/socketerr"
)

// connected returns a socket and another that is connected to it.
func connected(t *testing.T) (far, near *net.UDPConn) {
	t.Helper()
	far = listen(t, "127.0.0.1:0")
	near, err := net.DialUDP("udp", nil, far.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { near.Close() })
	return far, near
}

// TestLentReaderReadsEachDatagram has datagrams of all sizes come alone and in
// numbers, an empty one among them.
func TestLentReaderReadsEachDatagram(t *testing.T) {
	far, near := connected(t)
	r, err := NewLentReader(near)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 30 {
		var sent [][]byte
		for i := range 1 + round%10 {
			b := bytes.Repeat([]byte{byte(round)}, (round*7919+i*104729)%9000)
			if i == 3 {
				b = nil
			}
			if _, err := far.WriteToUDP(b, near.LocalAddr().(*net.UDPAddr)); err != nil {
				t.Fatal(err)
			}
			sent = append(sent, b)
		}
		_ = near.SetReadDeadline(time.Now().Add(20 * time.Second))
		for len(sent) > 0 {
			list, err := r.Read()
			if err != nil {
				t.Fatalf("round %d, %d datagrams before the end: %v", round, len(sent), err)
			}
			for _, b := range list {
				if !bytes.Equal(b, sent[0]) {
					t.Fatalf("round %d: got %d bytes, want %d, or others", round, len(b), len(sent[0]))
				}
				sent = sent[1:]
			}
			r.Done()
		}
	}
	_ = near.SetReadDeadline(time.Now())
	var timeout net.Error
	if _, err := r.Read(); !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("after its deadline it ended with %v", err)
	}
	_ = near.Close()
	if _, err := r.Read(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("closed, it ended with %v", err)
	}
}

// TestLostDatagramsAreToldOf writes to a port at which nobody listens any more.
func TestLostDatagramsAreToldOf(t *testing.T) {
	far, near := connected(t)
	told := make(chan error, 100)
	c := New(near, Options{NoGRO: true, Fragment: true, NeverWait: true, Lost: func(err error) { told <- err }})
	_ = far.Close()
	for range 100 { // the answer to one shows at the next
		if err := c.WriteBatch([][]byte{[]byte("one"), []byte("two")}, Addr{}); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-told:
			if !errors.Is(err, socketerr.Refused) {
				t.Errorf("told of %v", err)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
	t.Error("nobody was told of the datagrams that were refused")
}
