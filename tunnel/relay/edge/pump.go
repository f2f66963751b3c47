package edge

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/shape"
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

// bufferPool lends net/http/httputil the large buffers.
type bufferPool struct{}

func (bufferPool) Get() []byte  { return largeBuffers.Get().(*[largeBuffer]byte)[:] }
func (bufferPool) Put(b []byte) { largeBuffers.Put((*[largeBuffer]byte)(b)) }

// pump moves bytes between a visitor and a stream until both directions have
// ended, each on its own, or no byte has moved for idle, or ctx ends. A
// direction that breaks breaks the whole. before runs first in the direction
// towards the visitor: it reads the agent's answer.
func pump(ctx context.Context, v *visitor, s link.Stream, idle time.Duration, ep *Endpoint, before func() error) (in, out int64, err error) {
	var once sync.Once
	var reason error
	fail := func(err error) {
		once.Do(func() {
			reason = err
			v.abort()
			s.Reset()
		})
	}
	defer context.AfterFunc(ctx, func() { fail(ctx.Err()) })()
	var moved atomic.Int64
	last := int64(-1)
	var timer *time.Timer
	timer = time.AfterFunc(math.MaxInt64, func() {
		if now := moved.Load(); now != last {
			last = now
			timer.Reset(idle)
			return
		}
		fail(errIdle)
	})
	timer.Reset(idle)
	defer timer.Stop()

	var inward sync.WaitGroup
	inward.Go(func() {
		n, err := move(ctx, s, v, &moved, ep.in, ep.countIn)
		in = n
		if err == nil {
			err = s.CloseWrite()
		}
		if err != nil {
			fail(err)
		}
	})
	err = before()
	if err == nil {
		out, err = move(ctx, v, s, &moved, ep.out, ep.countOut)
	}
	if err == nil {
		err = v.CloseWrite()
	}
	if err != nil {
		fail(err)
	}
	inward.Wait()
	once.Do(func() {}) // waits for a failure under way; none comes after it
	v.Close()
	s.Close()
	return in, out, reason
}

// move copies until src ends; the error is either side's. Bytes wait for what
// bounds them now.
func move(ctx context.Context, dst io.Writer, src io.Reader, moved *atomic.Int64, bound func() shape.Buckets, count func(int)) (total int64, err error) {
	small := smallBuffers.Get().(*[smallBuffer]byte)
	defer smallBuffers.Put(small)
	var large *[largeBuffer]byte
	defer func() {
		if large != nil {
			largeBuffers.Put(large)
		}
	}()
	buf := small[:]
	out := &countedTo{dst, moved, count}
	var take func([]byte) int
	if try, ok := dst.(interface{ TryWrite([]byte) int }); ok {
		take = func(b []byte) int {
			if !bound().Free() {
				return 0
			}
			n := try.TryWrite(b)
			out.wrote(n)
			total += int64(n)
			return n
		}
	}
	for {
		n, err := link.ReadDirect(src, buf, take)
		if n > 0 {
			m, err := bound().Write(ctx, out, buf[:n])
			total += int64(m)
			if err != nil {
				return total, err
			}
		}
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
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

// countedTo counts each write, so that a slow flow is not taken for an idle one.
type countedTo struct {
	io.Writer
	moved *atomic.Int64
	count func(int)
}

func (w *countedTo) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.wrote(n)
	return n, err
}

func (w *countedTo) wrote(n int) {
	w.moved.Add(int64(n))
	w.count(n)
}
