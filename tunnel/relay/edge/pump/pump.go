// Package pump copies bytes in both directions between a visitor and a stream until both
// directions have ended, and counts them.
package pump

import (
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lend"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/shape"
)

// errIdle ends a connection that has stalled.
var errIdle = errors.New("no byte was moved for too long")

// Pump copies bytes between a visitor and a stream until both directions have ended, each by
// itself, or no byte has moved for idle, or ctx ends. The meter limits and counts the bytes.
// If one direction fails, both end. before is called first in the direction towards the
// visitor, to read the agent's answer.
func Pump(ctx context.Context, v *visitor.Conn, s link.Stream, idle time.Duration, meter *shape.Meter, before func() error) (in, out int64, err error) {
	var once sync.Once
	var reason error
	fail := func(err error) {
		once.Do(func() {
			reason = err
			v.Abort()
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
		n, err := move(ctx, s, v.Source(), &moved, meter.In, meter.CountIn)
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
		out, err = move(ctx, v, s, &moved, meter.Out, meter.CountOut)
	}
	if err == nil {
		err = v.CloseWrite()
	}
	if err != nil {
		fail(err)
	}
	inward.Wait()
	once.Do(func() {}) // waits for a failure in progress and prevents later ones
	v.Close()
	s.Close()
	return in, out, reason
}

// move copies until src ends. The error may come from either side. Bytes wait for the
// bandwidth limits that apply at the time.
func move(ctx context.Context, dst io.Writer, src io.Reader, moved *atomic.Int64, bound func() shape.Buckets, count func(int)) (total int64, err error) {
	var mem lend.Buffer
	defer mem.Return()
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
		b, err := link.ReadDirect(src, &mem, take)
		if len(b) > 0 {
			m, err := bound().Write(ctx, out, b)
			total += int64(m)
			if err != nil {
				return total, err
			}
		}
		mem.Done(len(b))
		if errors.Is(err, io.EOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// countedTo counts every write, so that a slow flow is not mistaken for an idle one.
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
