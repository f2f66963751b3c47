package edge

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"adit/tunnel/link"
)

const copyBuffer = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }}

// bufferPool lends net/http/httputil the same buffers.
type bufferPool struct{}

func (bufferPool) Get() []byte  { return *buffers.Get().(*[]byte) }
func (bufferPool) Put(b []byte) { buffers.Put(&b) }

// pump moves bytes between a visitor and a stream until both directions have
// ended, each on its own, or no byte has moved for idle, or ctx ends. A
// direction that breaks breaks the whole. before runs first in the direction
// towards the visitor: it reads the agent's answer.
func pump(ctx context.Context, v *visitor, s link.Stream, idle time.Duration, ep *Endpoint, before func() error) (in, out int64, err error) {
	var moved atomic.Int64
	broken := make(chan struct{})
	var once sync.Once
	var reason error
	fail := func(err error) {
		once.Do(func() {
			reason = err
			close(broken)
			v.abort()
			s.Reset()
		})
	}
	watch := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		ticker := time.NewTicker(idle)
		defer ticker.Stop()
		last := int64(-1)
		for {
			select {
			case <-ticker.C:
				if now := moved.Load(); now != last {
					last = now
					continue
				}
				fail(errIdle)
			case <-ctx.Done():
				fail(ctx.Err())
			case <-broken:
			case <-watch:
			}
			return
		}
	})
	var both sync.WaitGroup
	both.Go(func() {
		n, err := move(s, v, &moved, &ep.bytesIn)
		in = n
		if err == nil {
			err = s.CloseWrite()
		}
		if err != nil {
			fail(err)
		}
	})
	both.Go(func() {
		err := before()
		if err == nil {
			out, err = move(v, s, &moved, &ep.bytesOut)
		}
		if err == nil {
			err = v.CloseWrite()
		}
		if err != nil {
			fail(err)
		}
	})
	both.Wait()
	close(watch)
	group.Wait()
	v.Close()
	s.Close()
	return in, out, reason
}

// move copies until src ends; the error is either side's.
func move(dst io.Writer, src io.Reader, moved, count *atomic.Int64) (total int64, err error) {
	p := buffers.Get().(*[]byte)
	defer buffers.Put(p)
	for {
		n, err := src.Read(*p)
		if n > 0 {
			if _, err := dst.Write((*p)[:n]); err != nil {
				return total, err
			}
			total += int64(n)
			moved.Add(int64(n))
			count.Add(int64(n))
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}
