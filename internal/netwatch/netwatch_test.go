package netwatch

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestRunTellsEachChangeOnce by looks alone, and by one piece of the system's
// news.
func TestRunTellsEachChangeOnce(t *testing.T) {
	home := state{"eth0 192.0.2.1/24", netip.MustParseAddr("192.0.2.1")}
	tests := []struct {
		name   string
		after  state
		asleep time.Duration
		want   []Change
	}{
		{"nothing", home, 0, nil},
		{"another address", state{home.addresses + "\neth1 198.51.100.1/24", home.source}, 0, []Change{Addresses}},
		{"another source", state{home.addresses, netip.MustParseAddr("198.51.100.1")}, 0, []Change{Route}},
		{"no network", state{}, 0, []Change{Route}},
		{"sleep", home, time.Hour, []Change{Wake}},
		{"sleep and another address", state{"", netip.Addr{}}, time.Hour, []Change{Wake}},
		{"the clock set back", home, -time.Hour, []Change{Wake}},
		{"the clock adjusted", home, time.Second, nil},
	}
	for i := range 2 * len(tests) {
		test, news := tests[i/2], i%2 == 1
		name := test.name
		if news {
			name += ", told by the system"
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				current, skipped := home, time.Duration(0)
				var got []Change
				w := Watcher{
					Changed: func(c Change) { got = append(got, c) },
					look:    func() state { mu.Lock(); defer mu.Unlock(); return current },
					wall:    func() time.Time { mu.Lock(); defer mu.Unlock(); return time.Now().Add(skipped) },
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				var sys system
				pieces := make(chan piece)
				if news {
					sys = system{pieces, true}
				}
				go func() { done <- w.run(ctx, sys) }()
				time.Sleep(12 * time.Minute)
				mu.Lock()
				current, skipped = test.after, test.asleep
				mu.Unlock()
				if news {
					pieces <- changed
				}
				time.Sleep(time.Minute)
				cancel()
				if err := <-done; err != nil || !slices.Equal(got, test.want) {
					t.Errorf("got %v, %v; want %v", got, err, test.want)
				}
			})
		})
	}
}

func TestNewsAreLookedAtAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, n := range []struct {
			piece piece
			want  Change
		}{{changed, ""}, {removed, Route}, {woke, Wake}} {
			news := make(chan piece)
			told := make(chan Change, 1)
			w := Watcher{Changed: func(c Change) { told <- c }, look: func() state { return state{} }, wall: time.Now}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- w.run(ctx, system{news: news}) }()
			news <- n.piece
			time.Sleep(settle + time.Millisecond)
			select {
			case c := <-told:
				if c != n.want {
					t.Errorf("news %v: told %v", n.piece, c)
				}
			default:
				if n.want != "" {
					t.Errorf("news %v: nothing was told", n.piece)
				}
			}
			cancel()
			<-done
		}
	})
}

// TestQuietSystemIsNotAsked counts looks: none where the system tells of all, as
// before once it tells no more, and soon under news that do not end.
func TestQuietSystemIsNotAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		w := Watcher{
			Changed: func(c Change) { t.Errorf("told %v", c) },
			look:    func() state { looks.Add(1); return state{} },
		}
		news := make(chan piece)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.run(ctx, system{news, true}) }()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := looks.Swap(0); got != 2 {
			t.Errorf("%d looks at the start, want 2", got)
		}
		time.Sleep(time.Hour)
		if got := looks.Swap(0); got != 0 {
			t.Errorf("%d looks in a quiet hour, want none", got)
		}
		for range 200 {
			news <- changed
			time.Sleep(settle / 3)
		}
		if got := looks.Swap(0); got < 4 || got > 20 {
			t.Errorf("%d looks in 10 s of news, want one about every 2 s", got)
		}
		close(news)
		time.Sleep(time.Minute)
		if got := looks.Load(); got < 11 {
			t.Errorf("%d looks in a minute without the system, want one every 5 s", got)
		}
		cancel()
		<-done
	})
}

func TestRunEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := Watcher{Target: netip.MustParseAddrPort("127.0.0.1:9"), Changed: func(Change) {}}
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("got %v, want nil", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Run goes on")
	}
}

func TestSourceTowardsLoopback(t *testing.T) {
	if got := source(netip.MustParseAddrPort("127.0.0.1:9")); got != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("got %v, want 127.0.0.1", got)
	}
}
