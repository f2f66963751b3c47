package reliable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"adit/internal/simnet"
	"adit/tunnel/link/budget"
)

// TestHostilePeers speaks to a session frame by frame, and expects it to end
// with the code of the rule that was broken.
func TestHostilePeers(t *testing.T) {
	data := func(id, off uint64, n int, fin bool) []byte {
		return append(appendStreamHeader(nil, id, off, n, fin), make([]byte, n)...)
	}
	for name, c := range map[string]struct {
		frames [][]byte
		code   uint64
	}{
		"acknowledges what was never sent":   {[][]byte{appendAck(nil, []span{{1 << 30, 1 << 30}}, 0, 100)}, codeProtocol},
		"acknowledges over and over":         {[][]byte{bytes.Repeat(appendAck(nil, []span{{0, 0}}, 0, 100), 5)}, codeProtocol},
		"opens streams without end":          {[][]byte{data(20000<<2, 0, 1, false)}, codeStreamLimit},
		"sends beyond a stream's window":     {[][]byte{data(0, initialStreamWindow, 1, false)}, codeFlowControl},
		"ends a stream twice":                {[][]byte{data(0, 0, 10, true), data(0, 10, 5, true)}, codeFinalSize},
		"ends a stream before its data":      {[][]byte{data(0, 0, 10, false), data(0, 0, 5, true)}, codeFinalSize},
		"resets beyond the window":           {[][]byte{appendNumbers(nil, frameResetStream, 0, 0, 1<<40)}, codeFlowControl},
		"speaks of streams never opened":     {[][]byte{appendNumbers(nil, frameStopSending, 1, 0)}, codeStreamState},
		"uses streams in one direction":      {[][]byte{data(2, 0, 1, false)}, codeStreamState},
		"sends frames that do not exist":     {[][]byte{{0x3e}}, codeFrame},
		"allows more streams than there are": {[][]byte{appendNumbers(nil, frameMaxStreams, 1<<61)}, codeFrame},
		"leaves a stream in pieces":          {inPieces(), codeProtocol},
		"leaves many streams in pieces":      {manyPieces(), codeProtocol},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, near, Config{}, func(w *world) {
				for _, f := range c.frames {
					b := make([]byte, plainHead, plainHead+len(f)+plainTail)
					b = append(b, f...)
					w.carA.Send([][]byte{b[:len(b)+plainTail]})
				}
				select {
				case <-w.b.Done():
				case <-time.After(5 * time.Second):
					t.Fatal("the session goes on")
				}
				var broken *ProtocolError
				if err := w.b.Err(); !errors.As(err, &broken) || broken.Code != c.code || !errors.Is(err, net.ErrClosed) {
					t.Errorf("got %v, want code %d", err, c.code)
				}
				<-w.a.Done()
				var closed *CloseError
				if err := w.a.Err(); !errors.As(err, &closed) || closed.Code != c.code || closed.Reason == "" {
					t.Errorf("the peer was told %v, want code %d and a reason", err, c.code)
				}
			})
		})
	}
}

// inPieces is every second byte of a stream.
func inPieces() (frames [][]byte) {
	for i := range uint64(maxGaps + 2) {
		frames = append(frames, append(appendStreamHeader(nil, 0, 2*i, 1, false), 0))
	}
	return frames
}

// manyPieces are of several streams, each of which has fewer than it may.
func manyPieces() (packets [][]byte) {
	const each = maxGaps - 1
	for stream := range uint64(maxPieces/each + 2) {
		var packet []byte
		for i := range uint64(each) {
			if packet = append(appendStreamHeader(packet, stream<<2, 2*i, 1, false), 0); len(packet) > 1000 {
				packets, packet = append(packets, packet), nil
			}
		}
		packets = append(packets, packet)
	}
	return packets
}

// TestPiecesAreCountedOnce: streams that come in pieces and are read, ended or given
// up leave nothing behind that would count against the next ones.
func TestPiecesAreCountedOnce(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 5 * time.Millisecond, Loss: 0.05}, Config{}, func(w *world) {
		for i := range 30 {
			st, in := pair(t, w.a, w.b)
			go func() {
				st.Write(make([]byte, 300_000))
				st.CloseWrite()
			}()
			if i%3 == 0 {
				io.ReadFull(in, make([]byte, 1000))
				in.Reset()
			} else if n, err := io.Copy(io.Discard, in); err != nil || n < 300_000 {
				t.Errorf("got %d bytes, %v", n, err)
			}
			in.Close()
			st.Close()
		}
		time.Sleep(10 * time.Second)
		for _, s := range []*Session{w.a, w.b} {
			s.mu.Lock()
			if len(s.streams) != 0 || s.pieces != 0 {
				t.Errorf("%d streams are left, and %d pieces count", len(s.streams), s.pieces)
			}
			s.mu.Unlock()
		}
	})
}

func TestUnreadStreamsCostBoundedMemory(t *testing.T) {
	budget := budget.New(8 << 20)
	cfg := Config{Budget: budget}
	inBubble(t, broadband(), cfg, func(w *world) {
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				st, err := w.a.OpenStream(context.Background())
				if err != nil {
					return
				}
				st.SetWriteDeadline(time.Now().Add(30 * time.Second))
				st.Write(make([]byte, 1<<20))
			})
		}
		wg.Wait()
		w.b.mu.Lock()
		held := w.b.held()
		w.b.mu.Unlock()
		if most := int64(initialSessionWindow + 8<<20); held > most || held < most/2 {
			t.Errorf("the reader holds %d bytes, want at most %d and more than half of that", held, most)
		}
		if used := budget.Used(); used > 8<<20 {
			t.Errorf("the budget: %d used", used)
		}
		w.a.mu.Lock()
		sending := w.a.buffered
		w.a.mu.Unlock()
		if limit := int64(2*w.a.cfg.SendBuffer) + 200*leastSendLimit; sending > limit {
			t.Errorf("the writer holds %d bytes, want at most %d", sending, limit)
		}
	})
	if used := budget.Used(); used != 0 {
		t.Errorf("the budget after the end: %d used", used)
	}
}
