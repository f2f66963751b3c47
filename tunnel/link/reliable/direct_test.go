package reliable

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/lend"
)

// TestDirectReaderGetsAllInOrder lets a taker take as much as chance wills: the
// rest, and what comes while nobody waits, is read as usual.
func TestDirectReaderGetsAllInOrder(t *testing.T) {
	path := near
	path.Loss, path.Reorder = 0.02, 0.05
	inBubble(t, path, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		want := make([]byte, 600_000)
		rng := rand.New(rand.NewPCG(1, 2))
		for i := range want {
			want[i] = byte(rng.Uint32())
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			rng := rand.New(rand.NewPCG(3, 4))
			for rest := want; len(rest) > 0; {
				n, err := st.Write(rest[:min(len(rest), 1+rng.IntN(3000))])
				if err != nil {
					t.Errorf("write: %v", err)
					return
				}
				rest = rest[n:]
				if rng.IntN(3) == 0 {
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
				}
			}
			st.CloseWrite()
		}()
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
		<-done
		if !bytes.Equal(got, want) {
			t.Errorf("got %d bytes that differ from the %d sent", len(got), len(want))
		}
		if taken == 0 || taken == len(want) {
			t.Errorf("%d of %d bytes were taken directly: the test shows nothing", taken, len(want))
		}
	})
}

func TestDirectReaderEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(st, in *Stream)
		want error
	}{
		"with the stream":   {func(st, _ *Stream) { st.CloseWrite() }, io.EOF},
		"by a reset":        {func(st, _ *Stream) { st.Reset() }, ErrReset},
		"by its own close":  {func(_, in *Stream) { in.Close() }, net.ErrClosed},
		"at its deadline":   {func(_, in *Stream) { in.SetReadDeadline(time.Now()) }, os.ErrDeadlineExceeded},
		"with the session":  {func(st, _ *Stream) { go st.s.Close("enough") }, net.ErrClosed},
		"with data and end": {func(st, _ *Stream) { st.Write([]byte("last")); st.CloseWrite() }, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, near, Config{}, func(w *world) {
				st, in := pair(t, w.a, w.b)
				var got []byte
				took := make(chan struct{}, 16)
				result := make(chan error, 1)
				go func() {
					n, err := in.ReadDirect(make([]byte, 10), func(b []byte) int {
						got = append(got, b...)
						took <- struct{}{}
						return len(b)
					})
					if n != 0 {
						t.Errorf("%d bytes were left", n)
					}
					result <- err
				}()
				synctest.Wait()
				st.Write([]byte("first"))
				<-took
				c.end(st, in)
				if err := <-result; !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if !bytes.HasPrefix(got, []byte("first")) {
					t.Errorf("took %q", got)
				}
			})
		})
	}
}

// TestStreamEndsWhileItsReaderTakes ends a stream from within, where it is
// worst: the bytes that are being taken must stay what they are.
func TestStreamEndsWhileItsReaderTakes(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		result := make(chan error, 1)
		go func() {
			_, err := in.ReadDirect(make([]byte, 10), func(b []byte) int {
				in.Reset() // a stranger's: another goroutine's, as far as the session knows
				if string(b) != "question" {
					t.Errorf("got %q", b)
				}
				return len(b)
			})
			result <- err
		}()
		synctest.Wait()
		st.Write([]byte("question"))
		if err := <-result; !errors.Is(err, net.ErrClosed) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
		w.b.mu.Lock()
		defer w.b.mu.Unlock()
		if w.b.recvData != w.b.consumed {
			t.Errorf("%d bytes received, %d given back to the window", w.b.recvData, w.b.consumed)
		}
	})
}

// TestAWaitingLentReaderHoldsNothing: memory is lent when there is something to
// put into it, not before.
func TestAWaitingLentReaderHoldsNothing(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		st, in := pair(t, w.a, w.b)
		var l lend.Buffer
		var n int
		var err error
		done := make(chan struct{})
		read := func() {
			n, err = in.ReadLent(&l, nil)
			done <- struct{}{}
		}
		go read()
		synctest.Wait()
		if l.Holds() {
			t.Error("a reader that waits holds memory")
		}
		if _, err := st.Write([]byte("here it is")); err != nil {
			t.Fatal(err)
		}
		<-done
		if got := string(l.Lend()[:n]); got != "here it is" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		l.Done(n)
		st.CloseWrite()
		go read()
		<-done
		if n != 0 || err != io.EOF || l.Holds() {
			t.Errorf("at the end: %d bytes, %v, memory held: %v", n, err, l.Holds())
		}
	})
}
