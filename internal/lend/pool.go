//go:build !race

package lend

import "sync"

// Pool is a sync.Pool of memory that is large. The zero value is ready.
type Pool[T any] struct {
	New  func() *T // if nil, new(T)
	pool sync.Pool
}

// Get returns what Put was given, or something new.
func (p *Pool[T]) Get() *T {
	if m, ok := p.pool.Get().(*T); ok {
		return m
	}
	if p.New != nil {
		return p.New()
	}
	return new(T)
}

// Put gives back what Get returned.
func (p *Pool[T]) Put(m *T) { p.pool.Put(m) }
