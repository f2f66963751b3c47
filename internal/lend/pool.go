//go:build !race

package lend

import "sync"

// Pool is a sync.Pool for large buffers. The zero value is ready for use.
type Pool[T any] struct {
	New  func() *T // if nil, new(T)
	pool sync.Pool
}

// Get returns something passed to Put, or something new.
func (p *Pool[T]) Get() *T {
	if m, ok := p.pool.Get().(*T); ok {
		return m
	}
	if p.New != nil {
		return p.New()
	}
	return new(T)
}

// Put returns to the pool what Get returned.
func (p *Pool[T]) Put(m *T) { p.pool.Put(m) }
