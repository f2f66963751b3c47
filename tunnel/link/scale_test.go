package link

import (
	"context"
	"io"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"adit/internal/require"
)

// memory is what the process holds, heap and stacks, after a collection.
func memory() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// atRest is memory once it no longer falls: what is idle lets go of its buffers
// after a moment.
func atRest() int64 {
	least := memory()
	for same := 0; same < 15; {
		time.Sleep(100 * time.Millisecond)
		if now := memory(); now < least-least/200 {
			least, same = now, 0
		} else {
			least, same = min(least, now), same+1
		}
	}
	return least
}

// TestThousandSessions (fewer unless ADIT_CALM says that nothing else runs, and
// under the race detector) prints what a session takes: both of its ends, for they
// are in one process here, each idle after a request and its answer.
func TestThousandSessions(t *testing.T) {
	count := 60
	switch {
	case require.Strict() && slowed:
		count = 200
	case os.Getenv("ADIT_CALM") != "":
		count = 1000
	}
	for _, transport := range []Transport{DTLS, TLS} {
		t.Run(string(transport), func(t *testing.T) {
			l, fingerprint := testListener(t, ListenConfig{})
			defer l.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 6*patience) // a session that is lost fails the test, and does not hold it
			defer cancel()
			before := atRest()
			var mu sync.Mutex
			var sessions []Session
			var group sync.WaitGroup
			slots := make(chan struct{}, 8)
			for range count {
				slots <- struct{}{}
				group.Go(func() {
					defer func() { <-slots }()
					client, err := Dial(ctx, DialConfig{
						Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport,
						NoWatch: true, // one would do for all of them
					})
					if err != nil {
						t.Errorf("dial: %v", err)
						return
					}
					mu.Lock()
					sessions = append(sessions, client)
					mu.Unlock()
				})
				group.Go(func() {
					server, err := l.Accept(ctx)
					if err != nil {
						t.Errorf("accept: %v", err)
						return
					}
					if s, err := server.AcceptStream(ctx); err == nil {
						io.Copy(s, s)
						s.Close()
					}
				})
			}
			wait(t, "the handshakes", 5*patience, func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(sessions) == count || t.Failed()
			})
			for _, s := range sessions {
				stream, err := s.OpenStream(ctx)
				if err != nil {
					t.Fatal(err)
				}
				stream.Write(make([]byte, 10_000))
				stream.CloseWrite()
				if n, err := io.Copy(io.Discard, onlyReader{stream}); n != 10_000 || err != nil {
					t.Fatalf("echo: got %d bytes, %v", n, err)
				}
				stream.Close()
			}
			group.Wait()
			t.Logf("%d sessions over %s take %d KiB each, both ends together", count, transport, (atRest()-before)/int64(count)/1024)
			for _, s := range sessions {
				group.Go(func() { s.Close("over") })
			}
			group.Wait()
		})
	}
}

// wait waits until a condition holds.
func wait(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, limit)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestTenThousandIdleStreams (fewer on a plain run) prints what a stream takes that waits: both ends.
func TestTenThousandIdleStreams(t *testing.T) {
	count := 1000
	if require.Strict() {
		count = 10_000
	}
	for _, transport := range []Transport{DTLS, TLS} {
		t.Run(string(transport), func(t *testing.T) {
			l, fingerprint := testListener(t, ListenConfig{})
			defer l.Close()
			client, err := Dial(t.Context(), DialConfig{Relay: l.Addr().String(), Fingerprint: fingerprint, Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close("over")
			server, err := l.Accept(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			before := atRest()
			ends := make([]Stream, 0, 2*count)
			for range count {
				a, b := connect(t, client, server)
				ends = append(ends, a, b)
			}
			if got := server.Stats().Streams; got != count {
				t.Errorf("got %d streams, want %d", got, count)
			}
			t.Logf("%d idle streams over %s take %d bytes each, both ends together", count, transport, (atRest()-before)/int64(count))
			a, b := connect(t, client, server) // and the session still works
			a.Close()
			b.Close()
			for _, s := range ends {
				s.Reset()
			}
		})
	}
}
