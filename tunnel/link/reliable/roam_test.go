package reliable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/simnet"
)

func sortDurations(d []time.Duration) { slices.Sort(d) }

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestReorderingDoesNotCollapse(t *testing.T) {
	path := broadband()
	path.Reorder = 0.1
	for _, c := range []Congestion{BBR, CUBIC} {
		inBubble(t, path, Config{Congestion: c}, func(w *world) {
			size, want := uint64(100<<20), 0.85
			if slowed {
				size, want = 10<<20, 0.5
			}
			took := transfer(t, w.a, w.b, size)
			share := float64(size) / took.Seconds() / 12_500_000
			t.Logf("%s, 10 %% reordered: %.1f %% of the link, %d of %d taken for lost", c, share*100, w.a.Stats().PacketsLost, w.a.Stats().PacketsSent)
			if share < want {
				t.Errorf("%s: got %.2f of the link, want %.2f", c, share, want)
			}
		})
	}
}

func TestRoaming(t *testing.T) {
	inBubble(t, broadband(), Config{}, func(w *world) {
		var wg sync.WaitGroup
		stop := make(chan struct{})
		var stall time.Duration
		wg.Go(func() { // the longest time without a byte
			last, at := uint64(0), time.Now()
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
				}
				if got := w.a.Stats().BytesReceived; got != last {
					last, at = got, time.Now()
				}
				stall = max(stall, time.Since(at))
			}
		})
		wg.Go(func() {
			for i := range 5 {
				time.Sleep(time.Second)
				host := netip.AddrFrom4([4]byte{10, 0, 1, byte(i)})
				b := netip.MustParseAddr("10.0.0.2")
				w.net.Route(host, b, w.there)
				w.net.Route(b, host, w.back)
				w.connA.Rebind(netip.AddrPortFrom(host, 1000).String())
				w.carA.signal()
			}
		})
		transfer(t, w.b, w.a, 64<<20) // a download by the side that moves
		close(stop)
		wg.Wait()
		t.Logf("five changes of address, longest stall %v", stall)
		if stall > time.Second {
			t.Errorf("longest stall: got %v, want under 1 s", stall)
		}
	})
}

func TestSmallDatagramsOnly(t *testing.T) {
	size := uint64(16 << 20)
	if slowed {
		size = 4 << 20
	}
	for _, mtu := range []int{1472, 1400, 1252, 1200, 900, 560} {
		path := near
		path.MTU = mtu
		path.Rate = 12_500_000
		inBubble(t, path, Config{}, func(w *world) {
			took := transfer(t, w.a, w.b, size)
			datagram := w.a.Stats().Datagram
			t.Logf("path of %d: datagrams of %d, %v", mtu, datagram, took)
			if datagram > mtu || datagram < mtu*7/8 && mtu >= 1200 {
				t.Errorf("path of %d: got datagrams of %d", mtu, datagram)
			}
			if took > 10*time.Second {
				t.Errorf("path of %d: took %v", mtu, took)
			}
		})
	}
}

func TestBlackHoleAppearsLater(t *testing.T) {
	path := near
	path.Rate = 12_500_000
	inBubble(t, path, Config{}, func(w *world) {
		transfer(t, w.a, w.b, 4<<20)
		if got := w.a.Stats().Datagram; got < 1472 {
			t.Fatalf("before: datagrams of %d", got)
		}
		w.there.Change(func(p *simnet.Path) { p.MTU = 1300 })
		took := transfer(t, w.a, w.b, 8<<20)
		if got := w.a.Stats().Datagram; got > 1300 || took > 5*time.Second {
			t.Errorf("after: datagrams of %d, took %v", got, took)
		}
	})
}

func TestJumboOnlyWhereProbesProveIt(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 50 * time.Microsecond, Rate: 1 << 30, Buffer: 2 << 20}, Config{}, func(w *world) {
		transfer(t, w.a, w.b, 16<<20)
		if got := w.a.Stats().Datagram; got != maxDatagram {
			t.Errorf("on a short path: got datagrams of %d, want %d", got, maxDatagram)
		}
	})
}

func TestSilentPeerIsNoticed(t *testing.T) {
	for _, busy := range []bool{true, false} {
		var suspected atomic.Int32
		cfg := Config{OnSuspect: func() { suspected.Add(1) }}
		inBubble(t, broadband(), cfg, func(w *world) {
			st, _ := pair(t, w.a, w.b)
			time.Sleep(time.Second)
			w.there.Change(func(p *simnet.Path) { p.Blocked = true })
			w.back.Change(func(p *simnet.Path) { p.Blocked = true })
			limit := 20 * time.Second
			if busy {
				st.Write(make([]byte, 100_000))
				limit = 3500 * time.Millisecond
			}
			began := time.Now()
			<-w.a.Done()
			if took := time.Since(began); took > limit {
				t.Errorf("busy=%v: noticed after %v, want %v", busy, took, limit)
			}
			if err := w.a.Err(); !errors.Is(err, ErrTimeout) {
				t.Errorf("busy=%v: got %v, want ErrTimeout", busy, err)
			}
			if suspected.Load() == 0 {
				t.Error("the suspicion was not told")
			}
		})
	}
}

func TestIdleSessionLives(t *testing.T) {
	path := broadband()
	path.Loss = 0.1
	inBubble(t, path, Config{}, func(w *world) {
		time.Sleep(10 * time.Minute)
		if w.a.Err() != nil || w.b.Err() != nil {
			t.Fatalf("got %v and %v, want two living sessions", w.a.Err(), w.b.Err())
		}
		if since := time.Since(w.a.Stats().LastReceived); since > w.a.Stats().KeepAlive {
			t.Errorf("last heard %v ago, want within %v", since, w.a.Stats().KeepAlive)
		}
	})
}

// TestIdleSessionLivesThroughAChangeOfAddress changes the address of a side
// that has nothing to send, just before the peer asks whether it lives.
func TestIdleSessionLivesThroughAChangeOfAddress(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		transfer(t, w.a, w.b, 1000)
		for i := range 20 {
			time.Sleep(time.Duration(i) * time.Second)
			w.net.Join(fmt.Sprintf("10.0.1.%d", i), "10.0.0.2", w.there, w.back)
			if err := w.connA.Rebind(fmt.Sprintf("10.0.1.%d:1000", i)); err != nil {
				t.Fatal(err)
			}
			w.b.Probe()
			time.Sleep(20 * time.Second)
		}
		if a, b := w.a.Err(), w.b.Err(); a != nil || b != nil {
			t.Fatalf("the session ended: %v; %v", a, b)
		}
		transfer(t, w.a, w.b, 1000)
		// What the peer sends after a change is asked for soon.
		w.net.Join("10.0.2.1", "10.0.0.2", w.there, w.back)
		in, err := w.b.OpenStream(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		transfer(t, w.a, w.b, 100)
		if err := w.connA.Rebind("10.0.2.1:1000"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		in.Write([]byte("late news"))
		got, err := w.a.AcceptStream(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(got, make([]byte, 9)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("heard after %v, want 2.5 s at most", took)
		}
	})
}

func TestShortOutageIsSurvived(t *testing.T) {
	inBubble(t, broadband(), Config{}, func(w *world) {
		go func() {
			time.Sleep(time.Second)
			w.there.Change(func(p *simnet.Path) { p.Blocked = true })
			time.Sleep(2 * time.Second)
			w.there.Change(func(p *simnet.Path) { p.Blocked = false })
		}()
		if took := transfer(t, w.a, w.b, 40<<20); took > 8*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

// TestSoak moves random streams both ways over a network that misbehaves in
// every way, and checks each byte. ADIT_SOAK is how long in virtual time.
func TestSoak(t *testing.T) {
	length := 20 * time.Second
	if slowed {
		length = 6 * time.Second
	}
	if v := os.Getenv("ADIT_SOAK"); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			t.Fatal(err)
		}
		length = d
	}
	path := simnet.Path{Delay: 10 * time.Millisecond, Jitter: 5 * time.Millisecond, Rate: 12_500_000, Loss: 0.02, Reorder: 0.05, Duplicate: 0.02}
	inBubble(t, path, Config{}, func(w *world) {
		rng := rand.New(rand.NewPCG(7, 7))
		end := time.Now().Add(length)
		var wg sync.WaitGroup
		echo := func(s *Session) {
			for {
				in, err := s.AcceptStream(context.Background())
				if err != nil {
					return
				}
				wg.Go(func() {
					io.Copy(struct{ io.Writer }{in}, struct{ io.Reader }{in})
					in.Close()
				})
			}
		}
		go echo(w.a)
		go echo(w.b)
		streams := 0
		for i := 0; time.Now().Before(end); i++ {
			s := []*Session{w.a, w.b}[rng.IntN(2)]
			size := uint64(rng.ExpFloat64() * 200_000)
			reset := rng.IntN(20) == 0
			streams++
			wg.Go(func() {
				st, err := s.OpenStream(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				defer st.Close()
				wg.Go(func() {
					io.Copy(struct{ io.Writer }{st}, &patternReader{id: st.ID(), left: size})
					st.CloseWrite()
				})
				if reset {
					time.Sleep(time.Duration(size % 100_000_000))
					st.Reset()
					return
				}
				verify(t, st, st.ID(), size)
			})
			time.Sleep(time.Duration(rng.ExpFloat64() * float64(60*time.Millisecond)))
			if i%200 == 100 { // the address changes too
				host := netip.AddrFrom4([4]byte{10, 1, byte(i >> 16), byte(i / 200)})
				w.net.Route(host, netip.MustParseAddr("10.0.0.2"), w.there)
				w.net.Route(netip.MustParseAddr("10.0.0.2"), host, w.back)
				w.connA.Rebind(netip.AddrPortFrom(host, 1000).String())
				w.carA.signal()
			}
		}
		wg.Wait()
		time.Sleep(3 * time.Second)
		t.Logf("%d streams in %v, %d bytes there and %d back", streams, length, w.a.Stats().BytesSent, w.b.Stats().BytesSent)
		if a, b := w.a.Stats().Streams, w.b.Stats().Streams; a != 0 || b != 0 {
			t.Errorf("streams left: %d and %d", a, b)
		}
	})
}
