package reliable

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestServedDatagramsComeInOrder has messages come before and while they are
// served, to a handler that sends on the same session.
func TestServedDatagramsComeInOrder(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		const early, all = 20, 2000
		send := func(from, to int) {
			for i := from; i < to; i++ {
				if err := w.a.SendDatagram(binary.BigEndian.AppendUint32(nil, uint32(i))); err != nil {
					t.Fatal(err)
				}
				if i%50 == 0 {
					time.Sleep(10 * time.Millisecond)
				}
			}
		}
		send(0, early)
		time.Sleep(time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		var got []uint32
		ended := make(chan error)
		go func() {
			ended <- w.b.ServeDatagrams(ctx, func(list [][]byte) {
				for _, b := range list {
					got = append(got, binary.BigEndian.Uint32(b))
					if err := w.b.SendDatagram(b); err != nil {
						t.Errorf("send: %v", err)
					}
				}
			})
		}()
		synctest.Wait()
		if len(got) != early {
			t.Errorf("%d messages that had come before were given, want %d", len(got), early)
		}
		send(early, all)
		time.Sleep(time.Second)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		for i, n := range got {
			if n != uint32(i) {
				t.Fatalf("message %d came as number %d", n, i)
			}
		}
		if len(got) != all {
			t.Errorf("got %d of %d messages", len(got), all)
		}
		// Afterwards they wait again for who receives them.
		send(all, all+1)
		time.Sleep(time.Second)
		if len(got) != all {
			t.Error("a handler was called after its end")
		}
		buf := make([]byte, 16)
		if n, err := w.b.ReceiveDatagram(context.Background(), buf); n != 4 || err != nil || binary.BigEndian.Uint32(buf) != all {
			t.Errorf("got %d bytes, %v", n, err)
		}
	})
}

// TestGatheredDatagramsLeaveTogether has messages wait for the last of them, and
// go without it where something else leaves.
func TestGatheredDatagramsLeaveTogether(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		var batches []int
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			ended <- w.b.ServeDatagrams(ctx, func(list [][]byte) { batches = append(batches, len(list)) })
		}()
		send := func(n int) {
			for range n {
				if err := w.a.SendDatagram([]byte("message")); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
		time.Sleep(5 * time.Second) // what both do at first is over
		before := w.a.Stats().PacketsSent
		w.a.GatherDatagrams()
		w.a.GatherDatagrams() // another
		send(5)
		if n := w.a.Stats().PacketsSent - before; n != 0 {
			t.Errorf("%d packets left before all had gathered", n)
		}
		w.a.SendGathered()
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if !slices.Equal(batches, []int{5}) {
			t.Errorf("5 messages came as %v", batches)
		}
		w.a.SendGathered() // nothing has gathered
		send(2)
		synctest.Wait()
		if !slices.Equal(batches, []int{5, 1, 1}) {
			t.Errorf("those that nobody gathers came as %v", batches)
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// TestServingEndsWithTheSession: it returns the session's end, also to a handler
// that ends the session.
func TestServingEndsWithTheSession(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		calls := 0
		ended := make(chan error)
		go func() {
			ended <- w.b.ServeDatagrams(context.Background(), func([][]byte) {
				calls++
				go w.b.Close("enough")
			})
		}()
		synctest.Wait()
		if err := w.a.SendDatagram([]byte("end")); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err == nil || calls != 1 {
			t.Errorf("ended with %v after %d calls", err, calls)
		}
	})
}

// TestServingEndsAfterItsHandler: who stops to serve may let go of what the handler uses.
func TestServingEndsAfterItsHandler(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		ctx, cancel := context.WithCancel(context.Background())
		release := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			ended <- w.b.ServeDatagrams(ctx, func([][]byte) { <-release })
		}()
		if err := w.a.SendDatagram([]byte("slow")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it has ended while its handler is being called")
		default:
		}
		close(release)
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(time.Second):
			t.Fatal("it goes on though its handler has returned")
		}
	})
}
