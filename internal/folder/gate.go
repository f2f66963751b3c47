package folder

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"adit/internal/netblock"
)

// An address has some wrong passwords at once, and one more after a while. No
// password is looked at from one that has none left: if a right one were answered
// all the same, guessing would have no pace.
const (
	triesAtOnce = 10
	triesAgain  = 6 * time.Second
	maxGuessers = 10_000 // addresses that are remembered
)

// gate asks for a password.
type gate struct {
	sum [sha256.Size]byte

	mu    sync.Mutex
	tries map[netip.Prefix]tries
}

type tries struct {
	left float64
	at   time.Time
}

func newGate(password string) *gate {
	return &gate{sum: sha256.Sum256([]byte(password)), tries: make(map[netip.Prefix]tries)}
}

// verdict is what a gate says of a request.
type verdict int

const (
	unnamed  verdict = iota // it has no password, or a wrong one
	admitted                // it has the password
	tooMany                 // too many wrong ones came from its address
)

func (g *gate) judge(r *http.Request) verdict {
	_, password, given := r.BasicAuth()
	if !given {
		return unnamed
	}
	sum, who, now := sha256.Sum256([]byte(password)), netblock.Of(visitor(r)), time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	left := g.left(who, now)
	switch {
	case left < 1:
		return tooMany
	case subtle.ConstantTimeCompare(sum[:], g.sum[:]) == 1:
		return admitted
	}
	if _, known := g.tries[who]; !known && len(g.tries) >= maxGuessers {
		g.forget(now)
	}
	g.tries[who] = tries{left - 1, now}
	return unnamed
}

// left is how many wrong passwords an address has now; g.mu is held.
func (g *gate) left(who netip.Prefix, now time.Time) float64 {
	t, known := g.tries[who]
	if !known {
		return triesAtOnce
	}
	return min(triesAtOnce, t.left+float64(now.Sub(t.at))/float64(triesAgain))
}

// forget drops the addresses that have all tries back, and if that is none, all:
// a flood of them must not take all memory. g.mu is held.
func (g *gate) forget(now time.Time) {
	for who := range g.tries {
		if g.left(who, now) >= triesAtOnce {
			delete(g.tries, who)
		}
	}
	if len(g.tries) >= maxGuessers {
		clear(g.tries)
	}
}

// visitor is the address of a request's visitor. The last of X-Forwarded-For is by
// the relay itself: the visitor's, or a load balancer's that it trusts. That one has
// put the visitor's before it; what is further ahead anybody may have written.
func visitor(r *http.Request) netip.Addr {
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	hop := strings.TrimSpace(hops[max(0, len(hops)-2)])
	if at, err := netip.ParseAddrPort(hop); err == nil {
		return at.Addr()
	}
	a, err := netip.ParseAddr(strings.Trim(hop, "[]"))
	if err != nil { // nobody's: by no relay
		at, _ := netip.ParseAddrPort(r.RemoteAddr)
		return at.Addr()
	}
	return a
}
