package netwatch

import (
	"context"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

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
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
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
				go func() { done <- w.run(ctx, nil) }()
				time.Sleep(12 * time.Second)
				mu.Lock()
				current, skipped = test.after, test.asleep
				mu.Unlock()
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
			want  bool
		}{{changed, false}, {removed, true}} {
			news := make(chan piece)
			told := make(chan Change, 1)
			w := Watcher{Changed: func(c Change) { told <- c }, look: func() state { return state{} }, wall: time.Now}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { done <- w.run(ctx, news) }()
			news <- n.piece
			time.Sleep(settle + time.Millisecond)
			select {
			case c := <-told:
				if !n.want || c != Route {
					t.Errorf("news %v: told %v", n.piece, c)
				}
			default:
				if n.want {
					t.Errorf("news %v: nothing was told", n.piece)
				}
			}
			cancel()
			<-done
		}
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
