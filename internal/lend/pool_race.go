//go:build race

package lend

import (
	"runtime"
	"sync"
	"unsafe"
)

// Pool is a sync.Pool of memory that is large. The zero value is ready.
//
// For the race detector sync.Pool throws away a quarter of what it is given. New
// memory of this size costs the detector much more than what is done with it, so
// here all is kept. As with sync.Pool, only the one that had the memory before is
// before the one that has it next: the lock, which would order all users of the
// pool, is hidden from the detector.
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
