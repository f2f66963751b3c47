package origin

import (
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link"
)

// open is a stream that notes whether it is open.
type open struct {
	link.Stream
	closed bool
}

func (o *open) Close() error { o.closed = true; return nil }
func (o *open) Reset()       {}
func (o *open) Quiet() bool  { return true }

// TestKeptConnectionsMakeRoom checks that idle connections are closed for one that waits for
// its first answer, unless the origin has answered on another one a moment ago, or the waiting
// one has been used before.
func TestKeptConnectionsMakeRoom(t *testing.T) {
	for what, c := range map[string]struct {
		used   bool
		busy   bool
		signs  bool
		closed bool
	}{
		"nothing is answered":         {closed: true},
		"others are answered":         {busy: true},
		"one that was used waits":     {used: true},
		"and others are answered too": {used: true, busy: true},
		"somebody signs in by it":     {signs: true}, // whose next step takes its time
	} {
		synctest.Test(t, func(t *testing.T) {
			var pool idleStreams
			kept := &open{}
			stream := newStream(&Conn{Stream: kept}, &pool)
			stream.signs = c.signs
			pool.put(stream)
			waits := newStream(&Conn{Stream: &open{}}, &pool)
			waits.used = c.used
			waits.Patience(time.Minute)
			for range 10 {
				time.Sleep(makeRoom / 3)
				if c.busy {
					s := pool.take(Want{})
					if s == nil {
						t.Fatalf("%s: nothing is kept", what)
					}
					pool.put(s)
				}
			}
			waits.Close()
			synctest.Wait()
			if kept.closed != c.closed {
				t.Errorf("%s: the kept connection is closed: %v, want %v", what, kept.closed, c.closed)
			}
			pool.close()
		})
	}
}

// TestAnAnswerThatTakesLongEmptiesThePoolNoMore checks that a request that the origin holds,
// as in long polling, has other connections closed only for a limited time.
func TestAnAnswerThatTakesLongEmptiesThePoolNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var pool idleStreams
		waits := newStream(&Conn{Stream: &open{}}, &pool)
		waits.Patience(time.Minute)
		for _, c := range []struct {
			after  time.Duration
			closed bool
		}{{makeRoomFor - time.Second, true}, {makeRoomFor + time.Second, false}} {
			time.Sleep(c.after)
			kept := &open{}
			pool.put(newStream(&Conn{Stream: kept}, &pool))
			time.Sleep(2 * makeRoom)
			synctest.Wait()
			if kept.closed != c.closed {
				t.Errorf("after %v: the kept connection is closed: %v, want %v", c.after, kept.closed, c.closed)
			}
		}
		waits.Close()
		pool.close()
	})
}
