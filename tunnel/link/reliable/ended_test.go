package reliable

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// TestStreamEndsWhileItsWriterCopies ends a stream while a Write has the lock
// given up: nothing may go behind the end that the peer was told, which would
// end the session with all of its streams.
func TestStreamEndsWhileItsWriterCopies(t *testing.T) {
	for name, end := range map[string]func(*Stream){
		"CloseWrite": func(st *Stream) { _ = st.CloseWrite() },
		"Close":      func(st *Stream) { _ = st.Close() },
		"Reset":      func(st *Stream) { st.Reset() },
	} {
		for _, wait := range []time.Duration{0, time.Second} { // that the end has been sent, or not
			t.Run(name+" "+wait.String(), func(t *testing.T) {
				inBubble(t, near, Config{}, func(w *world) {
					st, in := pair(t, w.a, w.b)
					if _, err := st.Write([]byte("before")); err != nil {
						t.Fatal(err)
					}
					w.a.mu.Lock()
					var parts [copyBlocks + 1][]byte
					n := st.lay(&parts, 50_000)
					w.a.mu.Unlock()
					end(st)
					time.Sleep(wait)
					synctest.Wait()
					size := 0
					for _, p := range parts[:n] {
						clear(p)
						size += len(p)
					}
					w.a.mu.Lock()
					if got := st.laid(size); got != 0 {
						t.Errorf("%d bytes count as written behind the end", got)
					}
					w.a.mu.Unlock()
					if _, err := st.Write([]byte("after")); !errors.Is(err, net.ErrClosed) {
						t.Errorf("a later Write: got %v", err)
					}
					got, err := io.ReadAll(in)
					if name == "Reset" {
						if !errors.Is(err, ErrReset) {
							t.Errorf("read %q, %v", got, err)
						}
					} else if string(got) != "before" || err != nil {
						t.Errorf("read %q, %v", got, err)
					}
					in.Close()
					time.Sleep(5 * time.Second)
					w.a.mu.Lock()
					defer w.a.mu.Unlock()
					if err := w.a.err; err != nil {
						t.Errorf("the session has ended: %v", err)
					}
					if len(st.out.blocks) > 0 || w.a.buffered != 0 {
						t.Errorf("%d blocks are held, %d bytes wait", len(st.out.blocks), w.a.buffered)
					}
				})
			})
		}
	}
}

// TestSessionEndsWithItsCarrier: who reads does not wait for a peer that cannot come
// back, and nobody is told of a peer that has gone silent.
func TestSessionEndsWithItsCarrier(t *testing.T) {
	inBubble(t, near, Config{}, func(w *world) {
		_, in := pair(t, w.a, w.b)
		ended := make(chan error, 1)
		go func() {
			_, err := io.ReadAll(in)
			ended <- err
		}()
		time.Sleep(time.Second)
		w.carB.Close()
		select {
		case err := <-ended:
			if !errors.Is(err, net.ErrClosed) || errors.Is(err, ErrTimeout) || w.b.Err() != err {
				t.Errorf("read: got %v, want the end of the carrier", err)
			}
		case <-time.After(time.Second):
			t.Fatal("a reader waits though the carrier is closed")
		}
	})
}
