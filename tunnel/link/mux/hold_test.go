package mux

import (
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"adit/tunnel/link/budget"
)

func TestReadersThatStandStillStopNobody(t *testing.T) {
	for name, c := range map[string]struct {
		streams int
		read    int64
		memory  int64 // of the budget
		given   bool  // some are given up
	}{
		"few who read much before":   {8, 32 << 20, 1 << 30, false},
		"many":                       {500, 0, 1 << 30, true},
		"with little memory":         {60, 0, 4 << 20, true},
		"who read, of little memory": {4, 24 << 20, 4 << 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := tcpPair(t)
			memory := budget.New(c.memory)
			cfg := config(false)
			cfg.Budget = memory
			client, server := New(a, config(true)), New(b, cfg)
			var writing sync.WaitGroup
			send := func(size int) (*Stream, *Stream) { // size 0: without end
				out, err := client.OpenStream(within(t))
				if err != nil {
					t.Fatal(err)
				}
				writing.Go(func() {
					chunk := make([]byte, 256<<10)
					for left := size; size == 0 || left > 0; left -= len(chunk) {
						if _, err := out.Write(chunk); err != nil {
							return
						}
					}
					out.CloseWrite()
				})
				in, err := server.AcceptStream(within(t))
				if err != nil {
					t.Fatal(err)
				}
				in.SetReadDeadline(time.Now().Add(time.Minute))
				return out, in
			}
			var out, stuck []*Stream
			for range c.streams {
				from, in := send(0)
				out, stuck = append(out, from), append(stuck, in)
				if _, err := io.CopyN(io.Discard, in, c.read); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				_, in := send(8 << 20)
				if n, err := io.Copy(io.Discard, in); n != 8<<20 || err != nil {
					t.Errorf("got %d bytes and %v beside streams that nobody reads", n, err)
				}
				in.Close()
			}
			if held := server.buffered.Load(); held > min(64<<20, freeBuffered+c.memory) {
				t.Errorf("%d bytes are held", held)
			}
			given := 0
			for _, in := range stuck {
				in.SetReadDeadline(time.Now().Add(time.Second))
				if _, err := in.Read(make([]byte, 1)); errors.Is(err, errReset) {
					given++
				}
			}
			if memory.GivenUp() != uint64(given) {
				t.Errorf("%d streams were counted, and %d given up", memory.GivenUp(), given)
			}
			if (given > 0) != c.given || given > 3*len(stuck)/4 {
				t.Errorf("%d of %d streams were given up", given, len(stuck))
			}
			for _, st := range out {
				st.Reset()
			}
			writing.Wait()
			client.Close("over")
			<-server.Done()
			server.Close("")
			if memory.Used() != 0 {
				t.Errorf("%d of the budget used after the session", memory.Used())
			}
		})
	}
}
