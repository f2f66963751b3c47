package console

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"adit/internal/netblock"
)

// limiter slows down who guesses: each key has some wrong tries at once, and
// gets one more every few seconds.
type limiter struct {
	mu    sync.Mutex
	tries map[string]*try
}

type try struct {
	left float64
	at   time.Time
}

const (
	triesAtOnce = 10
	triesAgain  = 6 * time.Second // for one more
	maxTries    = 10_000          // keys that are remembered
)

// refill brings the key's tries up to date; the caller holds mu.
func (l *limiter) refill(key string, now time.Time) *try {
	t := l.tries[key]
	if t == nil {
		if len(l.tries) >= maxTries {
			l.forget(now)
		}
		t = &try{left: triesAtOnce, at: now}
		l.tries[key] = t
	}
	t.left = min(triesAtOnce, t.left+float64(now.Sub(t.at))/float64(triesAgain))
	t.at = now
	return t
}

// forget drops who has all tries back, and if that is nobody, everyone: a flood
// of addresses must not take all memory.
func (l *limiter) forget(now time.Time) {
	for key, t := range l.tries {
		if now.Sub(t.at) > triesAtOnce*triesAgain {
			delete(l.tries, key)
		}
	}
	if len(l.tries) >= maxTries {
		clear(l.tries)
	}
}

// take takes a try before it is made, or reports that none is left: tries that
// are under way at the same time count too.
func (l *limiter) take(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.refill(key, time.Now())
	if t.left < 1 {
		return false
	}
	t.left--
	return true
}

// right gives back a try that was right.
func (l *limiter) right(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.refill(key, time.Now())
	t.left = min(triesAtOnce, t.left+1)
}

// addressKey is whom wrong tries are counted for: an IPv4 address, or an IPv6
// network of 64 bits, which one customer has.
func addressKey(r *http.Request) string {
	text := addressOf(r)
	a, err := netip.ParseAddr(text)
	if err != nil {
		return text
	}
	return netblock.Of(a).String()
}

// addressOf is the address that a request came from.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
