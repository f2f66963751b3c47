//go:build race

package lend

import (
	"runtime"
	"sync"
	"unsafe"
)

// Pool is a sync.Pool for large buffers. The zero value is ready for use.
//
// Under the race detector, sync.Pool discards a quarter of what it is given. New memory of this
// size costs the detector far more than what is done with it, so everything is kept here. As with
// sync.Pool, a Put only happens before the Get that returns the same memory: the lock, which would
// order all users of the pool, is hidden from the detector.
type Pool[T any] struct {
	New func() *T // if nil, new(T)

	mu   sync.Mutex
	free [64]*T
	n    int // of free
}

// Get returns what Put was given, or something new.
//
//go:norace
func (p *Pool[T]) Get() *T {
	var m *T
	runtime.RaceDisable()
	p.mu.Lock()
	if p.n > 0 {
		p.n--
		m = p.free[p.n]
	}
	p.mu.Unlock()
	runtime.RaceEnable()
	if m != nil {
		runtime.RaceAcquire(unsafe.Pointer(m))
		return m
	}
	if p.New != nil {
		return p.New()
	}
	return new(T)
}

// Put gives back what Get returned.
//
//go:norace
func (p *Pool[T]) Put(m *T) {
	runtime.RaceReleaseMerge(unsafe.Pointer(m))
	runtime.RaceDisable()
	p.mu.Lock()
	if p.n < len(p.free) {
		p.free[p.n] = m
		p.n++
	}
	p.mu.Unlock()
	runtime.RaceEnable()
}
