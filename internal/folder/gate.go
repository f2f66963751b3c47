package folder

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"

	"adit/internal/guess"
	"adit/internal/netblock"
)

// gate asks for a password.
type gate struct {
	sum     [sha256.Size]byte
	guesses guess.Pace // by the address of the visitor
}

func newGate(password string) *gate { return &gate{sum: sha256.Sum256([]byte(password))} }

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
	who := netblock.Of(visitor(r)).String()
	if !g.guesses.Take(who) {
		return tooMany
	}
	if sum := sha256.Sum256([]byte(password)); subtle.ConstantTimeCompare(sum[:], g.sum[:]) != 1 {
		return unnamed
	}
	g.guesses.Right(who)
	return admitted
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
