package origin

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestKeptConnectionsAreTheirVisitors: by one that a visitor has signed in by, another
// would be taken for that visitor. The own one is found again for as long as it is kept,
// and none is kept for longer than origins keep theirs.
func TestKeptConnectionsAreTheirVisitors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(3, 4))
		var pool idleStreams
		visitor := func(port uint16) Want {
			return Want{Visit: Visit{Visitor: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port)}, Conn: port}
		}
		visitors := []Want{visitor(1), visitor(2), visitor(3)}
		var out []*Stream
		for range 3000 {
			w := visitors[rng.IntN(len(visitors))]
			switch rng.IntN(5) {
			case 0:
				s := newStream(&Conn{Stream: &open{}}, &pool)
				if rng.IntN(2) == 0 {
					s.of, s.signs = w.owner(), rng.IntN(2) == 0
				}
				out = append(out, s)
			case 1:
				if n := len(out); n > 0 {
					pool.put(out[n-1])
					out = out[:n-1]
				}
			case 2, 3:
				w.Apart = rng.IntN(2) == 0
				pool.mu.Lock()
				own := slices.ContainsFunc(pool.list, func(s *Stream) bool { return s.of == w.owner() && time.Since(s.idle) < originIdle })
				pool.mu.Unlock()
				s := pool.take(w)
				if s == nil && own || s != nil && s.of != w.owner() && (own || w.Apart || s.of != owner{}) {
					t.Fatalf("apart %v: got %+v where one of its own is kept: %v", w.Apart, s, own)
				}
				if s != nil {
					out = append(out, s)
				}
			case 4:
				time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
			}
			pool.mu.Lock()
			owned := 0
			for _, s := range pool.list {
				if s.of != (owner{}) {
					owned++
				}
			}
			if pool.owned != owned {
				t.Fatalf("%d count as visitors' own, want %d", pool.owned, owned)
			}
			pool.mu.Unlock()
		}
		for _, s := range out {
			pool.put(s)
		}
		time.Sleep(2*originIdle + time.Second)
		synctest.Wait()
		if len(pool.list) != 0 {
			t.Errorf("%d are kept too long", len(pool.list))
		}
		for _, s := range out {
			if !s.Conn.Stream.(*open).closed {
				t.Error("one that is not kept any more is open")
			}
		}
		pool.close()
	})
}

// TestNothingIsKeptOfAnOriginThatHasGone, also of what is in use when it goes.
func TestNothingIsKeptOfAnOriginThatHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pool idleStreams
		kept, used := &open{}, &open{}
		pool.put(newStream(&Conn{Stream: kept}, &pool))
		s := newStream(&Conn{Stream: used}, &pool)
		pool.close()
		pool.put(s)
		if !kept.closed || !used.closed || len(pool.list) != 0 {
			t.Errorf("the kept one is closed: %v, the used one: %v, and %d are kept", kept.closed, used.closed, len(pool.list))
		}
	})
}
