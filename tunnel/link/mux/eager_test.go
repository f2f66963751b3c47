package mux

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// eagerPipe is a connection whose WriteNow has room for as much as chance wills.
type eagerPipe struct {
	net.Conn
	t     *testing.T
	ready atomic.Int64 // calls of WriteNow
	full  atomic.Int64 // those that left something
	whole bool         // it has room for all

	mu   sync.Mutex
	rest []byte
}

func (p *eagerPipe) WriteNow(b []byte) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready.Add(1)
	if len(p.rest) > 0 {
		p.t.Error("a write came before what was left is flushed")
	}
	n := len(b)
	if !p.whole && rand.IntN(3) == 0 {
		n = rand.IntN(n)
		p.full.Add(1)
	}
	p.rest = append(p.rest, b[n:]...)
	_, err := p.Conn.Write(b[:n])
	return len(p.rest) > 0, err
}

func (p *eagerPipe) Flush() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := p.Conn.Write(p.rest)
	p.rest = nil
	return err
}

func (p *eagerPipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.rest) > 0 {
		p.t.Error("a write came before what was left is flushed")
	}
	return p.Conn.Write(b)
}

// echoes are two sessions over eager connections, of which one sends back what
// the other's streams bring.
func echoes(t *testing.T) (client *Session, pipes [2]*eagerPipe) {
	a, b := net.Pipe()
	pipes = [2]*eagerPipe{{Conn: a, t: t}, {Conn: b, t: t}}
	client, server := New(pipes[0], config(true)), New(pipes[1], config(false))
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			st, err := server.AcceptStream(t.Context())
			if err != nil {
				return
			}
			wg.Go(func() {
				defer st.Close()
				buf := make([]byte, 4096)
				for {
					n, err := st.Read(buf)
					if err != nil {
						return
					}
					if _, err := st.Write(buf[:n]); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		client.Close("test over")
		server.Close("test over")
		wg.Wait()
	})
	return client, pipes
}

func ask(t *testing.T, st *Stream, size int) {
	t.Helper()
	want := make([]byte, size)
	for i := range want {
		want[i] = byte(rand.Uint32())
	}
	if _, err := st.Write(want); err != nil {
		t.Errorf("write: %v", err)
		return
	}
	got := make([]byte, size)
	if _, err := io.ReadFull(st, got); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back otherwise, %v", size, err)
	}
}

func TestSmallRequestsAreWrittenByTheirWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, pipes := echoes(t)
		st, err := client.OpenStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const requests = 300
		for range requests {
			ask(t, st, 1+rand.IntN(1000))
			time.Sleep(time.Millisecond)
		}
		for i, p := range pipes {
			// The first of a stream, and what follows at once, goes over the writer.
			if n := p.ready.Load(); n < requests-5 || p.full.Load() == 0 {
				t.Errorf("side %d: %d of %d written at once, of which %d in part", i, n, requests, p.full.Load())
			}
		}
		st.Close()
	})
}

// TestBulkIsWrittenByItsWriter: what is a batch by itself wakes nobody.
func TestBulkIsWrittenByItsWriter(t *testing.T) {
	a, b := net.Pipe()
	pipe := &eagerPipe{Conn: a, t: t, whole: true}
	s := New(pipe, config(true))
	defer s.Close("test over")
	go io.Copy(io.Discard, b)
	st, err := s.OpenStream(within(t))
	if err != nil {
		t.Fatal(err)
	}
	st.Write([]byte("this opens the stream"))
	const size = initialWindow / 2 // no window is granted
	was := pipe.ready.Load()
	// The opening may be on its way yet: then the writer goes on with what follows.
	for ; pipe.ready.Load() == was; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		st.sendWindow = initialWindow
		s.mu.Unlock()
		if n, err := st.Write(make([]byte, size)); n != size || err != nil {
			t.Fatalf("wrote %d bytes, %v", n, err)
		}
		if t.Context().Err() != nil {
			t.Fatal("the writer wrote all of it")
		}
	}
}

func TestManyWritersKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := echoes(t)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				st, err := client.OpenStream(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer st.Close()
				for range 100 {
					ask(t, st, 1+rand.IntN(2*eagerMost))
					if rand.IntN(2) == 0 {
						time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
					}
				}
			})
		}
		wg.Wait()
	})
}

// stuck is a connection that takes nothing any more.
type stuck struct{ *eagerPipe }

func (stuck) WriteNow([]byte) (bool, error) { return true, nil }

func stuckSession(t *testing.T) *Session {
	a, b := net.Pipe() // nobody reads b
	t.Cleanup(func() { b.Close() })
	return New(stuck{&eagerPipe{Conn: a, t: t}}, config(false))
}

func TestWriteDoesNotWaitForAFullConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuckSession(t)
		st, err := s.OpenStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for range 10 {
			if _, err := st.Write(make([]byte, 100)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(begun); took > 20*time.Millisecond {
			t.Errorf("ten small writes took %v", took)
		}
		s.end(errSilent)
		<-s.finished
	})
}

// TestWhatWaitsToBeWrittenIsBounded: a connection that takes nothing holds up
// small writes, too, before they fill the memory.
func TestWhatWaitsToBeWrittenIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stuckSession(t)
		wrote := 0
		for range 20 {
			st, err := s.OpenStream(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			st.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
			for range 400 {
				n, err := st.Write(make([]byte, 500))
				wrote += n
				if err != nil {
					break
				}
			}
		}
		if most := 4 * newBatch; wrote > most {
			t.Errorf("%d bytes wait, want %d at most", wrote, most)
		}
		s.end(errSilent)
		<-s.finished
	})
}
