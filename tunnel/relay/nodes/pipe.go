package nodes

import (
	"context"
	"io"
	"sync"

	"adit/internal/lend"
	"adit/tunnel/link"
)

// pipe copies bytes between two streams until both directions have ended, each by itself,
// or ctx ends. An error in one direction ends both.
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

// move copies until src ends. The error may be from either side.
func move(dst io.Writer, src io.Reader) error {
	var mem lend.Buffer
	defer mem.Return()
	for {
		b, err := link.ReadDirect(src, &mem, nil)
		if len(b) > 0 {
			if _, err := dst.Write(b); err != nil {
				return err
			}
		}
		mem.Done(len(b))
		if isEnd(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
