// Package guess slows down clients that guess secrets: each may make a few wrong tries in a row,
// and gains one more every few seconds.
package guess

import (
	"sync"
	"time"
)

const (
	// AtOnce is how many wrong tries a key has in a row.
	AtOnce = 10
	// Again is how long it takes to gain one more.
	Again = 6 * time.Second

	maxKeys = 10_000 // that are remembered
)

// Pace counts tries by keys, which identify who tries. The zero value is ready for use.
type Pace struct {
	mu    sync.Mutex
	tries map[string]*try
}

type try struct {
	left float64
	at   time.Time
}

// Take uses up a try before it is made, or reports that none is left: tries in progress count too.
// In that case the guess must not be checked at all: if a right one were accepted anyway, guessing
// would not be slowed down.
func (p *Pace) Take(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.refill(key, time.Now())
	if t.left < 1 {
		return false
	}
	t.left--
	return true
}

// Right gives back a try that turned out to be right.
func (p *Pace) Right(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.refill(key, time.Now()); t.left+1 < AtOnce {
		t.left++
	} else {
		delete(p.tries, key) // as one that never tried
	}
}

// refill brings the key's tries up to date; p.mu is held.
func (p *Pace) refill(key string, now time.Time) *try {
	t := p.tries[key]
	if t == nil {
		if len(p.tries) >= maxKeys {
			p.forget(now)
		}
		if p.tries == nil {
			p.tries = make(map[string]*try)
		}
		t = &try{left: AtOnce, at: now}
		p.tries[key] = t
	}
	t.left = min(AtOnce, t.left+float64(now.Sub(t.at))/float64(Again))
	t.at = now
	return t
}

// forget drops who has all tries back, and if that is nobody, everyone: a flood of
// keys must not take all memory. p.mu is held.
func (p *Pace) forget(now time.Time) {
	for key, t := range p.tries {
		if now.Sub(t.at) > AtOnce*Again {
			delete(p.tries, key)
		}
	}
	if len(p.tries) >= maxKeys {
		clear(p.tries)
	}
}
