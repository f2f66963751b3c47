package claims

import (
	"context"
	"sync"
)

// How many writes of claims are under way at once. Each is on the disk before the
// next, so that more make none of them faster: those that wait here for longer than
// a try lasts would be tried again there, beside the try before.
const (
	turnsOfAll    = 64
	turnsOfClient = 8 // so that a client with very many agents does not keep others waiting
)

// turns give writes their turn.
type turns struct {
	all chan struct{}

	mu       sync.Mutex
	ofClient map[string]*clientTurns
}

type clientTurns struct {
	places chan struct{}
	users  int // that have a place or wait for one
}

func newTurns() *turns {
	return &turns{all: make(chan struct{}, turnsOfAll), ofClient: make(map[string]*clientTurns)}
}

// take makes a client's write when it is its turn.
func (t *turns) take(ctx context.Context, client string, write func() error) error {
	t.mu.Lock()
	c := t.ofClient[client]
	if c == nil {
		c = &clientTurns{places: make(chan struct{}, turnsOfClient)}
		t.ofClient[client] = c
	}
	c.users++
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if c.users--; c.users == 0 {
			delete(t.ofClient, client)
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
	return write()
}
