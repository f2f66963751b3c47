// Package turns limits how much work is done for clients at once: so many tasks in total, and fewer
// for one client, so that a client that asks for very much keeps nobody else waiting.
package turns

import (
	"context"
	"sync"
)

// Turns holds the places for all clients together and for each client.
type Turns struct {
	all  chan struct{}
	each int

	mu       sync.Mutex
	ofClient map[string]*client
}

type client struct {
	places chan struct{}
	users  int // that have a place or wait for one
}

// New returns Turns with that many places in total, and that many for each client.
func New(all, each int) *Turns {
	return &Turns{all: make(chan struct{}, all), each: each, ofClient: make(map[string]*client)}
}

// Take calls do for a client when it is its turn, and returns its error. If ctx ends before that,
// it returns the reason.
func (t *Turns) Take(ctx context.Context, id string, do func() error) error {
	t.mu.Lock()
	c := t.ofClient[id]
	if c == nil {
		c = &client{places: make(chan struct{}, t.each)}
		t.ofClient[id] = c
	}
	c.users++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.users--; c.users == 0 {
			delete(t.ofClient, id)
		}
	}()
	for _, places := range []chan struct{}{c.places, t.all} { // first its own: nobody else waits for those
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return do()
}
