package nodes

import (
	"context"
	"io"
	"sync"

	"adit/tunnel/link"
)

// The sizes of copies. Most visitors are idle most of the time, so they wait
// with a small buffer; one that fills it goes on with a large one.
const (
	smallBuffer = 4 << 10
	largeBuffer = 64 << 10
)

var (
	smallBuffers = sync.Pool{New: func() any { return new([smallBuffer]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([largeBuffer]byte) }}
)

// pipe moves bytes between two streams until both directions have ended, each on
// its own, or ctx ends. A direction that breaks breaks the whole.
func pipe(ctx context.Context, a, b link.Stream) {
	var once sync.Once
	fail := func() {
		once.Do(func() {
			a.Reset()
			b.Reset()
		})
	}
	defer context.AfterFunc(ctx, fail)()
	half := func(dst, src link.Stream) {
		if move(dst, src) != nil || dst.CloseWrite() != nil {
			fail()
		}
	}
	var back sync.WaitGroup
	back.Go(func() { half(a, b) })
	half(b, a)
	back.Wait()
	a.Close()
	b.Close()
}

// move copies until src ends; the error is either side's.
func move(dst io.Writer, src io.Reader) error {
	small := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(small)
	var large *[largeBuffer]byte
	defer func() {
		if large != nil {
			largeBuffers.Put(large)
		}
	}()
	buf := small[:]
	for {
		n, err := src.Read(buf)
		if n > 0 {
			if _, err := dst.Write(buf[:n]); err != nil {
				return err
			}
		}
		if isEnd(err) {
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case large == nil && n == len(buf):
			large = largeBuffers.Get().(*[largeBuffer]byte)
			buf = large[:]
		case large != nil && n < smallBuffer:
			largeBuffers.Put(large)
			large, buf = nil, small[:]
		}
	}
}
