package mux

import (
	"net"
	"testing"
	"testing/synctest"
)

// A session of weeks on which many streams come and go uses its numbers up. Who
// keeps it makes another when it ends, and waits for ever for one that does not.
func TestSessionWithoutNumbersLeftEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		one, other := New(a, config(true)), New(b, config(false))
		defer other.Close("")
		one.mu.Lock()
		one.nextID = 1<<32 - 5
		one.mu.Unlock()
		for range 2 {
			st, err := one.OpenStream(within(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := st.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			peer, err := other.AcceptStream(within(t))
			if err != nil || peer.id != st.id {
				t.Fatalf("got stream %v, %v, want %d", peer, err, st.id)
			}
		}
		st, err := one.OpenStream(within(t))
		if ended := one.Err(); err == nil || ended == nil {
			one.Close("")
			t.Fatalf("got stream %v, %v and the session's error %v, want its end", st, err, ended)
		}
		<-other.Done()
	})
}

// TestHighestNumberIsOfEitherSide is what the owner of a session goes by, who opens
// another in time.
func TestHighestNumberIsOfEitherSide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		one, other := New(a, config(true)), New(b, config(false))
		defer other.Close("")
		defer one.Close("")
		if got := one.Stats().Highest; got > 1 {
			t.Errorf("got %d before any stream", got)
		}
		one.mu.Lock()
		one.nextID = RenewAfter + 1
		one.mu.Unlock()
		st, err := one.OpenStream(within(t))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := other.AcceptStream(within(t)); err != nil {
			t.Fatal(err)
		}
		for name, s := range map[string]*Session{"opener": one, "peer": other} {
			if got := s.Stats().Highest; got != RenewAfter+1 {
				t.Errorf("%s: got %d, want %d", name, got, uint32(RenewAfter)+1)
			}
		}
	})
}
