package record

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"
)

// TestDirectKeepsTheOrder sends packets alone and in bursts: whoever takes them,
// the order is theirs, and no two calls overlap.
func TestDirectKeepsTheOrder(t *testing.T) {
	leakCheck(t)
	c, s := pair(t, udpSocket(t), udpSocket(t), clientConfig(), serverConfig())
	const packets = 3000
	var next, direct, within atomic.Int64
	done := make(chan struct{})
	check := func(list []Packet) {
		if within.Add(1) != 1 {
			t.Error("two take packets at once")
		}
		for _, p := range list {
			if got := int64(binary.BigEndian.Uint64(p.Data[1:])); got != next.Load() {
				t.Errorf("got packet %d, want %d", got, next.Load())
				next.Store(got)
			}
			if next.Add(1) == packets {
				close(done)
			}
		}
		within.Add(-1)
	}
	s.Direct(func(list []Packet) { direct.Add(int64(len(list))); check(list) })
	go func() {
		into := make([]Packet, 8)
		for {
			n, err := s.Receive(into)
			if err != nil {
				return
			}
			check(into[:n])
		}
	}()
	head, tail := c.Room()
	for i := 0; i < packets; {
		burst := 1
		if i%10 == 0 {
			burst = min(7, packets-i)
		}
		var batch [][]byte
		for range burst {
			b := make([]byte, head+9+100+tail)
			binary.BigEndian.PutUint64(b[head+1:], uint64(i))
			batch = append(batch, b)
			i++
		}
		if _, err := c.Send(batch); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); next.Load() < int64(i)-50 && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
	}
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%d of %d packets came", next.Load(), packets)
	}
	if direct.Load() == 0 {
		t.Error("none came directly: the test shows nothing")
	}
}

// TestEndComesThroughDirect ends a session by an alert that the reader opens.
func TestEndComesThroughDirect(t *testing.T) {
	leakCheck(t)
	c, s := pair(t, udpSocket(t), udpSocket(t), clientConfig(), serverConfig())
	came := make(chan string, 10)
	s.Direct(func(list []Packet) {
		for _, p := range list {
			came <- string(p.Data)
		}
	})
	ended := make(chan error, 1)
	go func() {
		into := make([]Packet, 8)
		for {
			n, err := s.Receive(into)
			if err != nil {
				ended <- err
				return
			}
			for _, p := range into[:n] {
				came <- string(p.Data)
			}
		}
	}()
	for _, text := range []string{"one", "two"} {
		send(t, c, text)
		select {
		case got := <-came:
			if got != text {
				t.Errorf("got %q, want %q", got, text)
			}
		case <-time.After(patience):
			t.Fatal("nothing came")
		}
	}
	c.Close()
	select {
	case err := <-ended:
		if !errors.Is(err, ErrPeerClosed) {
			t.Errorf("got %v, want %v", err, ErrPeerClosed)
		}
	case <-time.After(patience):
		t.Fatal("the session did not end")
	}
}
