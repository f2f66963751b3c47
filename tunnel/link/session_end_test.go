package link

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// The part of the conformance suite that is about ends: of sessions, of waiting,
// and of the peer.

func testCloseReason(t *testing.T, p pair) {
	within(t, "close", func() {
		if err := p.client.Close("moving on"); err != nil {
			t.Errorf("close: %v", err)
		}
		<-p.server.Done()
		var closed *CloseError
		if err := p.server.Err(); !errors.As(err, &closed) || closed.Reason != "moving on" {
			t.Errorf("the peer's end: got %v, want its reason", err)
		}
		<-p.client.Done()
		for _, s := range []Session{p.client, p.server} {
			if err := s.Err(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v, want a match with net.ErrClosed", err)
			}
			if _, err := s.OpenStream(t.Context()); !errors.Is(err, net.ErrClosed) {
				t.Errorf("open after the end: got %v, want net.ErrClosed", err)
			}
			if err := s.SendDatagram([]byte("x")); !errors.Is(err, net.ErrClosed) {
				t.Errorf("datagram after the end: got %v, want net.ErrClosed", err)
			}
			if err := s.Close("again"); err != nil {
				t.Errorf("close twice: %v", err)
			}
		}
	})
}

func testPeerDeath(t *testing.T, p pair) {
	if p.cut == nil {
		t.Skip("this path cannot be cut")
	}
	a, _ := connect(t, p.client, p.server)
	p.cut()
	a.Write([]byte("into the void"))
	select {
	case <-p.client.Done():
	case <-time.After(2 * patience):
		t.Fatal("the session outlives its peer")
	}
	if err := p.client.Err(); !errors.Is(err, ErrTimeout) || !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want ErrTimeout and net.ErrClosed", err)
	}
}

func testDeadlines(t *testing.T, p pair) {
	a, b := connect(t, p.client, p.server)
	within(t, "deadlines", func() {
		a.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: got %v, want os.ErrDeadlineExceeded", err)
		}
		a.SetReadDeadline(time.Time{})
		b.Write([]byte("x"))
		if _, err := a.Read(make([]byte, 1)); err != nil {
			t.Errorf("read after the deadline was lifted: %v", err)
		}
		go func() { // wakes a read that waits already
			time.Sleep(10 * time.Millisecond)
			a.SetReadDeadline(time.Unix(1, 0))
		}()
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("waiting read: got %v, want os.ErrDeadlineExceeded", err)
		}
		a.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
		var err error
		for err == nil { // until all windows are full
			_, err = a.Write(make([]byte, 64<<10))
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("write: got %v, want os.ErrDeadlineExceeded", err)
		}
	})
}

func testContexts(t *testing.T, p pair) {
	within(t, "waiting", func() {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := p.client.AcceptStream(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("accept: got %v, want context.Canceled", err)
		}
		if _, err := p.client.ReceiveDatagram(ctx, make([]byte, 10)); !errors.Is(err, context.Canceled) {
			t.Errorf("receive: got %v, want context.Canceled", err)
		}
	})
}

func testEndFailsStreams(t *testing.T, p pair) {
	a, b := connect(t, p.client, p.server)
	var group sync.WaitGroup
	for _, s := range []Stream{a, b} {
		group.Go(func() {
			if _, err := s.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
				t.Errorf("read: got %v, want net.ErrClosed", err)
			}
		})
	}
	group.Go(func() {
		if _, err := p.server.AcceptStream(t.Context()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("accept: got %v, want net.ErrClosed", err)
		}
	})
	p.client.Close("over")
	within(t, "the streams", group.Wait)
	if _, err := a.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write: got %v, want net.ErrClosed", err)
	}
}

func testStats(t *testing.T, p pair) {
	before := time.Now()
	a, b := connect(t, p.client, p.server)
	within(t, "statistics", func() {
		go func() { a.Write(make([]byte, 10_000)); a.CloseWrite() }()
		io.Copy(io.Discard, onlyReader{b})
		b.Write([]byte("y"))
		io.ReadFull(a, make([]byte, 1))
	})
	st := p.client.Stats()
	if st.BytesSent < 10_001 || st.BytesReceived < 1 || st.Streams != 1 {
		t.Errorf("got %+v, want 10,001 bytes sent, 1 received, 1 stream", st)
	}
	if st.LastReceived.Before(before) || st.KeepAlive <= 0 || st.KeepAlive > time.Minute {
		t.Errorf("got %+v, want a time just now and a keep-alive", st)
	}
}
