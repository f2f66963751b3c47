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
