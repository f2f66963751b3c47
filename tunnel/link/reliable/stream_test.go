package reliable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

var near = simnet.Path{Delay: 5 * time.Millisecond}

// pair opens a stream with its first byte, and returns both its ends.
func pair(t *testing.T, from, to *Session) (*Stream, *Stream) {
	t.Helper()
	st, err := from.OpenStream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write([]byte{'!'}); err != nil {
		t.Fatal(err)
	}
	in, err := to.AcceptStream(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if n, err := in.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("first byte: %d, %v", n, err)
	}
	return st, in
}

func TestHalfClose(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		io.WriteString(st, "question")
		st.CloseWrite()
		if got, err := io.ReadAll(in); string(got) != "question" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if _, err := st.Write([]byte("more")); !errors.Is(err, net.ErrClosed) {
			t.Errorf("write after CloseWrite: got %v, want net.ErrClosed", err)
		}
		io.WriteString(in, "answer")
		in.Close()
		if got, err := io.ReadAll(st); string(got) != "answer" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		st.Close()
		time.Sleep(time.Second)
		if a, b := w.a.Stats().Streams, w.b.Stats().Streams; a != 0 || b != 0 {
			t.Errorf("streams left: %d and %d", a, b)
		}
	})
}

func TestCloseDeliversWhatWasWritten(t *testing.T) {
	path := near
	path.Loss = 0.2
	inBubble(t, path, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		want := bytes.Repeat([]byte("0123456789"), 20_000)
		st.Write(want)
		st.Close()
		if got, err := io.ReadAll(in); !bytes.Equal(got, want) || err != nil {
			t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(want))
		}
		in.Close()
		time.Sleep(3 * time.Second)
		if a, b := w.a.Stats().Streams, w.b.Stats().Streams; a != 0 || b != 0 {
			t.Errorf("streams left: %d and %d", a, b)
		}
	})
}

func TestResetFailsBothDirections(t *testing.T) {
	path := near
	path.Loss = 0.2
	inBubble(t, path, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		st.Write(make([]byte, 100_000))
		st.Reset()
		time.Sleep(2 * time.Second)
		if _, err := io.Copy(io.Discard, in); !errors.Is(err, ErrReset) {
			t.Errorf("read: got %v, want ErrReset", err)
		}
		if _, err := in.Write([]byte{1}); !errors.Is(err, ErrReset) {
			t.Errorf("write: got %v, want ErrReset", err)
		}
		if _, err := st.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own read: got %v, want net.ErrClosed", err)
		}
		in.Close()
		time.Sleep(3 * time.Second)
		if a, b := w.a.Stats().Streams, w.b.Stats().Streams; a != 0 || b != 0 {
			t.Errorf("streams left: %d and %d", a, b)
		}
	})
}

func TestCloseOfAReaderStopsTheWriter(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		in.Close()
		_, err := io.Copy(struct{ io.Writer }{st}, struct{ io.Reader }{&patternReader{left: 64 << 20}})
		if !errors.Is(err, ErrReset) {
			t.Errorf("got %v, want ErrReset", err)
		}
		// The session's window is not used up by what nobody reads.
		st.Close()
		transfer(t, w.a, w.b, 8<<20)
	})
}

func TestDeadlines(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		began := time.Now()
		in.SetReadDeadline(began.Add(time.Second))
		if _, err := in.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read: got %v, want a timeout", err)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("read timed out after %v, want 1 s", took)
		}
		st.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := st.Write(make([]byte, 32<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 {
			t.Errorf("write: got %d, %v, want some bytes and a timeout", n, err)
		}
		in.SetDeadline(time.Time{})
		if _, err := in.Read(make([]byte, 1)); err != nil {
			t.Errorf("read after the deadline was lifted: %v", err)
		}
	})
}

func TestSlowReaderStopsNobodyElse(t *testing.T) {
	inBubble(t, broadband(), Config{}, func(w *world) {
		var stuck []*Stream
		for range 20 {
			st, _ := pair(t, w.a, w.b)
			st.SetWriteDeadline(time.Now().Add(2 * time.Second))
			stuck = append(stuck, st)
		}
		var wg sync.WaitGroup
		for _, st := range stuck {
			wg.Go(func() { st.Write(make([]byte, 32<<20)) })
		}
		wg.Wait()
		size := uint64(20 << 20)
		if slowed {
			size /= 2
		}
		took := transfer(t, w.a, w.b, size)
		if share := float64(size) / took.Seconds() / 12_500_000; share < 0.6 {
			t.Errorf("beside 20 stuck streams: %.2f of the link, want 0.6", share)
		}
	})
}

func TestSmallRequestsBesideBulk(t *testing.T) {
	requests, losses := 300, []float64{0, 0.01, 0.03}
	if slowed {
		requests, losses = 60, []float64{0.01}
	}
	for _, loss := range losses {
		path := broadband()
		path.Loss = loss
		inBubble(t, path, Config{}, func(w *world) {
			serve := func() {
				for {
					in, err := w.b.AcceptStream(context.Background())
					if err != nil {
						return
					}
					go func() {
						b := make([]byte, 100)
						if _, err := io.ReadFull(in, b); err == nil {
							in.Write(make([]byte, 1000))
						}
						io.Copy(io.Discard, in)
						in.Close()
					}()
				}
			}
			go serve()
			if loss > 0 {
				untilLossShows(t, w)
			}
			idle := requestTimes(t, w.a, requests)
			bulk, err := w.a.OpenStream(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() { io.Copy(struct{ io.Writer }{bulk}, &patternReader{left: 1 << 40}) })
			time.Sleep(3 * time.Second)
			w.there.ResetStats()
			busy := requestTimes(t, w.a, requests)
			bulk.Reset()
			wg.Wait()
			p := func(d []time.Duration) time.Duration { return d[len(d)*99/100] }
			t.Logf("loss %.0f %%: small requests p50 %v p99 %v; beside bulk p50 %v p99 %v; queue mean %v most %v", loss*100,
				idle[requests/2], p(idle), busy[requests/2], p(busy), w.there.Stats().Queue, w.there.Stats().MaxQueue)
			if slowed {
				return
			}
			// A loss alone, a round trip later, would be 110 ms and more.
			most := func(d []time.Duration) time.Duration { return d[len(d)*98/100] }
			if limit := 70 * time.Millisecond; most(idle) > limit {
				t.Errorf("p98 alone at %.0f %%: got %v, want at most %v", loss*100, most(idle), limit)
			}
			if limit := 85 * time.Millisecond; most(busy) > limit {
				t.Errorf("p98 beside bulk at %.0f %%: got %v, want at most %v", loss*100, most(busy), limit)
			}
		})
	}
}

// requestTimes makes n requests one after another, sorted by how long they took.
func requestTimes(t *testing.T, s *Session, n int) []time.Duration {
	t.Helper()
	var took []time.Duration
	for range n {
		began := time.Now()
		st, err := s.OpenStream(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		st.Write(make([]byte, 100))
		if _, err := io.ReadFull(st, make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
		st.Close()
		time.Sleep(37 * time.Millisecond)
	}
	sortDurations(took)
	return took
}

func TestDatagrams(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		b := make([]byte, 65535)
		for i := range 500 {
			msg := bytes.Repeat([]byte{byte(i)}, 1+i*2)
			if err := w.a.SendDatagram(msg); err != nil {
				t.Fatal(err)
			}
			n, err := w.b.ReceiveDatagram(context.Background(), b)
			if err != nil || !bytes.Equal(b[:n], msg) {
				t.Fatalf("datagram %d: got %d bytes, %v", i, n, err)
			}
		}
		if err := w.a.SendDatagram(make([]byte, w.a.MaxDatagram()+1)); !errors.Is(err, ErrDatagramTooLarge) {
			t.Errorf("too large: got %v", err)
		}
		if err := w.a.SendDatagram(make([]byte, w.a.MaxDatagram())); err != nil {
			t.Errorf("the largest: got %v", err)
		}
		if n, err := w.b.ReceiveDatagram(context.Background(), b); n != w.a.MaxDatagram() || err != nil {
			t.Errorf("the largest: got %d bytes, %v; want %d", n, err, w.a.MaxDatagram())
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := w.b.ReceiveDatagram(ctx, b); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing to receive: got %v", err)
		}
	})
}

func TestDatagramsAndStreamsShareTheLink(t *testing.T) {
	inBubble(t, broadband(), Config{}, func(w *world) {
		stop, got := make(chan struct{}), 0
		var wg sync.WaitGroup
		wg.Go(func() { // twice what the link carries
			for b := make([]byte, 1000); ; {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
				}
				for range 25 {
					w.a.SendDatagram(b)
				}
			}
		})
		ctx, cancel := context.WithCancel(context.Background())
		wg.Go(func() {
			for b := make([]byte, 1000); ; got++ {
				if _, err := w.b.ReceiveDatagram(ctx, b); err != nil {
					return
				}
			}
		})
		const size = 10 << 20
		took := transfer(t, w.a, w.b, size)
		close(stop)
		cancel()
		wg.Wait()
		stream, datagrams := size/took.Seconds()/12_500_000, float64(got*1000)/took.Seconds()/12_500_000
		t.Logf("stream %.0f %%, datagrams %.0f %% of the link", stream*100, datagrams*100)
		if min(stream, datagrams) < 0.25 {
			t.Errorf("got %.2f for the stream and %.2f for the datagrams, want 0.25 for each", stream, datagrams)
		}
	})
}

func TestTenThousandIdleStreams(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		const n = 10_000
		var ours, theirs []*Stream
		before := heap()
		for range n {
			st, in := pair(t, w.a, w.b)
			ours, theirs = append(ours, st), append(theirs, in)
		}
		synctest.Wait()
		t.Logf("%d idle streams: %d bytes each for both ends", n, (heap()-before)/n)
		time.Sleep(time.Minute)
		if w.a.Err() != nil || w.b.Err() != nil {
			t.Fatalf("after a minute: %v, %v", w.a.Err(), w.b.Err())
		}
		for i := range ours {
			io.WriteString(ours[i], "x")
			ours[i].Close()
			theirs[i].Close()
		}
		time.Sleep(5 * time.Second)
		if a, b := w.a.Stats().Streams, w.b.Stats().Streams; a != 0 || b != 0 {
			t.Errorf("streams left: %d and %d", a, b)
		}
	})
}

func TestOpenStreamWaitsForTheLimit(t *testing.T) {
	cfg := Config{MaxStreams: 1024}
	inBubble(t, near, cfg, func(w *world) {
		var open []*Stream
		for range 1024 {
			st, in := pair(t, w.a, w.b)
			open = append(open, st, in)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := w.a.OpenStream(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("beyond the limit: got %v, want to wait", err)
		}
		for _, st := range open {
			st.Close()
		}
		if _, err := w.a.OpenStream(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCloseTellsThePeerWhy(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		w.a.Close("moving house")
		<-w.b.Done()
		var closed *CloseError
		if err := w.b.Err(); !errors.As(err, &closed) || closed.Reason != "moving house" || !errors.Is(err, net.ErrClosed) {
			t.Errorf("peer's error: got %v", err)
		}
		if _, err := in.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("peer's read: got %v", err)
		}
		if _, err := st.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
			t.Errorf("own write: got %v", err)
		}
		if _, err := w.a.OpenStream(context.Background()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("open: got %v", err)
		}
	})
}
