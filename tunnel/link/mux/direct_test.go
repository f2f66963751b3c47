package mux

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"adit/internal/lend"
)

// TestDirectReaderGetsAllInOrder lets a taker take as much as chance wills: the
// rest, and what comes while nobody waits, is read as usual.
func TestDirectReaderGetsAllInOrder(t *testing.T) {
	a, b := tcpPair(t)
	client, server := New(a, config(true)), New(b, config(false))
	defer client.Close("test over")
	defer server.Close("test over")
	ctx := within(t)
	st, err := client.OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 2<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	written := make(chan error, 1)
	go func() {
		rng := rand.New(rand.NewPCG(3, 4))
		for rest := want; len(rest) > 0; {
			n, err := st.Write(rest[:min(len(rest), 1+rng.IntN(6000))])
			if err != nil {
				written <- err
				return
			}
			rest = rest[n:]
			if rng.IntN(8) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		written <- st.CloseWrite()
	}()
	in, err := server.AcceptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	taken := 0
	take := func(b []byte) int {
		n := len(b)
		if rng.IntN(4) == 0 {
			n = rng.IntN(n + 1)
		}
		got = append(got, b[:n]...)
		taken += n
		return n
	}
	buf := make([]byte, 4<<10)
	for {
		n, err := in.ReadDirect(buf, take)
		got = append(got, buf[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-written; err != nil {
		t.Errorf("write: %v", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got %d bytes that differ from the %d sent", len(got), len(want))
	}
	if taken == 0 {
		t.Error("nothing was taken directly: the test shows nothing")
	}
	in.Close()
	st.Close()
}

func TestDirectReaderEndsAtItsDeadline(t *testing.T) {
	a, b := tcpPair(t)
	client, server := New(a, config(true)), New(b, config(false))
	defer client.Close("test over")
	defer server.Close("test over")
	st, err := client.OpenStream(within(t))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	st.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := st.ReadDirect(make([]byte, 10), func(b []byte) int { return len(b) }); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %d, %v", n, err)
	}
}

// TestAWaitingLentReaderHoldsNothing: memory is lent when there is something to
// put into it, not before.
func TestAWaitingLentReaderHoldsNothing(t *testing.T) {
	a, b := tcpPair(t)
	client, server := New(a, config(true)), New(b, config(false))
	defer client.Close("test over")
	defer server.Close("test over")
	ctx := within(t)
	st, err := client.OpenStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	in, err := server.AcceptStream(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var l lend.Buffer
	n, err := in.ReadLent(&l, nil)
	if got := string(l.Lend()[:n]); got != "a" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	l.Done(n)
	in.SetReadDeadline(time.Now().Add(10 * time.Millisecond))
	if n, err := in.ReadLent(&l, nil); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || l.Holds() {
		t.Errorf("after a wait for nothing: %d bytes, %v, memory held: %v", n, err, l.Holds())
	}
	in.SetReadDeadline(time.Time{})
	st.CloseWrite()
	if n, err := in.ReadLent(&l, nil); n != 0 || err != io.EOF || l.Holds() {
		t.Errorf("at the end: %d bytes, %v, memory held: %v", n, err, l.Holds())
	}
}
