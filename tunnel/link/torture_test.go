package link

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/lend"
)

// mark is the byte at an offset of a direction of a stream.
func mark(id, off uint64) byte { return byte((off*2654435761 + id*40503) >> 11) }

// flood writes size marked bytes in parts of all sizes, some of which end at a
// deadline and go on behind what was written. It returns how much that was, and
// what broke it.
func flood(s Stream, id uint64, size int, rng *rand.Rand) (off int, err error) {
	b := make([]byte, 100<<10)
	for off < size {
		n := 1 + rng.IntN(200)
		switch rng.IntN(6) {
		case 0:
			n = rng.IntN(len(b))
		case 1:
			n = 1 + rng.IntN(9<<10)
		}
		n = min(n, size-off)
		for i := range b[:n] {
			b[i] = mark(id, uint64(off+i))
		}
		if rng.IntN(8) == 0 {
			s.SetWriteDeadline(time.Now().Add(time.Duration(rng.IntN(300)) * time.Microsecond))
		}
		wrote, err := s.Write(b[:n])
		off += wrote
		clear(b[:n]) // it is the caller's again
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.SetWriteDeadline(time.Time{})
		case err != nil:
			return off, err
		case wrote != n:
			return off, io.ErrShortWrite
		}
		if rng.IntN(10) == 0 {
			time.Sleep(time.Duration(rng.IntN(1500)) * time.Microsecond)
		}
	}
	return off, nil
}

// drink reads marked bytes in all ways in turn, some of them up to a deadline,
// until the stream ends or breaks, and returns how much came.
func drink(t *testing.T, s Stream, id uint64, rng *rand.Rand) (off int, err error) {
	check := func(b []byte) bool {
		for i, c := range b {
			if want := mark(id, uint64(off+i)); c != want {
				t.Errorf("direction %d: byte %d is %d, want %d", id, off+i, c, want)
				return false
			}
		}
		off += len(b)
		return true
	}
	var reading atomic.Bool
	takeRng := rand.New(rand.NewPCG(rng.Uint64(), id))
	take := func(b []byte) int {
		if !reading.Load() {
			t.Errorf("direction %d: taken while nobody reads", id)
		}
		n := len(b)
		if takeRng.IntN(3) == 0 {
			n = takeRng.IntN(n + 1)
		}
		check(b[:n])
		return n
	}
	buf := make([]byte, 70<<10)
	var mem lend.Buffer
	defer mem.Return()
	for {
		if rng.IntN(6) == 0 {
			s.SetReadDeadline(time.Now().Add(time.Duration(rng.IntN(800)) * time.Microsecond))
		}
		var got []byte
		reading.Store(true)
		switch rng.IntN(5) {
		case 0:
			var n int
			n, err = s.Read(buf[:1+rng.IntN(len(buf))])
			got = buf[:n]
		case 1:
			var n int
			n, err = s.(DirectReader).ReadDirect(buf[:1+rng.IntN(300)], take)
			got = buf[:n]
		default:
			got, err = ReadDirect(s, &mem, take)
		}
		reading.Store(false)
		ok := check(got)
		clear(got)
		mem.Done(len(got))
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			s.SetReadDeadline(time.Time{})
		case err != nil || !ok:
			return off, err
		}
		if rng.IntN(20) == 0 {
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
		}
	}
}

// How a stream of testTorture ends before its time, by another goroutine than
// those that read and write it.
const (
	torn    = iota // reset
	ended          // CloseWrite amid a write
	dropped        // Close
	whole
)

// testTorture has streams of all lengths at once, written and read in all ways,
// some of which end amid it. What comes must be what was written, byte for
// byte: all of it where nothing was torn.
func testTorture(t *testing.T, p pair) {
	streams := 24
	if slowed {
		streams = 8
	}
	var group sync.WaitGroup
	for i := range streams {
		rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), uint64(i)))
		from, to := p.client, p.server
		if i%8 > 3 {
			from, to = to, from
		}
		a, b := connect(t, from, to)
		defer a.Close()
		defer b.Close()
		fate := i % 4
		for dir, ends := range [2][2]Stream{{a, b}, {b, a}} {
			id, size := uint64(2*i+dir), 1+rng.IntN(200<<10)
			if rng.IntN(3) == 0 {
				size = 1 + rng.IntN(3000)
			}
			var sent, got int
			var sendErr, gotErr error
			writing, reading := rand.New(rand.NewPCG(rng.Uint64(), 1)), rand.New(rand.NewPCG(rng.Uint64(), 2))
			var both sync.WaitGroup
			both.Go(func() {
				if sent, sendErr = flood(ends[0], id, size, writing); sendErr == nil {
					sendErr = ends[0].CloseWrite()
				}
			})
			both.Go(func() { got, gotErr = drink(t, ends[1], id, reading) })
			group.Go(func() {
				both.Wait()
				var ok bool
				eof := errors.Is(gotErr, io.EOF)
				switch {
				case fate == whole, fate == ended && dir == 1:
					ok = eof && sendErr == nil && got == size && sent == size
				case fate == torn, dir == 1:
					ok = got <= sent && (!eof || got == size)
				default: // all that counts as written comes
					ok = eof && got == sent
				}
				if !ok {
					t.Errorf("stream %d, fate %d, direction %d of %d bytes: %d written (%v), %d read (%v)",
						i, fate, dir, size, sent, sendErr, got, gotErr)
				}
			})
		}
		after := time.Duration(rng.IntN(20_000)) * time.Microsecond
		group.Go(func() {
			time.Sleep(after)
			switch fate {
			case torn:
				a.Reset()
			case ended:
				_ = a.CloseWrite() // what it breaks shows below
			case dropped:
				_ = a.Close()
			}
		})
	}
	within(t, "streams", group.Wait)
	if err := errors.Join(p.client.Err(), p.server.Err()); err != nil {
		t.Errorf("a session has ended: %v", err)
	}
}
