package folder

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"time"
)

const (
	// wrongWait is how long a wrong password is thought about.
	wrongWait = time.Second
	// wrongAtOnce is of how many at once: guesses beyond wait for their turn. Who
	// knows the password does not.
	wrongAtOnce = 8
)

// gate asks for a password.
type gate struct {
	sum   [sha256.Size]byte
	wrong chan struct{} // a place for each wrong password that waits
}

func newGate(password string) *gate {
	return &gate{sum: sha256.Sum256([]byte(password)), wrong: make(chan struct{}, wrongAtOnce)}
}

// admits reports whether a request has the password. It takes its time with one
// that has another.
func (g *gate) admits(r *http.Request) bool {
	_, password, given := r.BasicAuth()
	if !given {
		return false
	}
	sum := sha256.Sum256([]byte(password))
	if subtle.ConstantTimeCompare(sum[:], g.sum[:]) == 1 {
		return true
	}
	select {
	case g.wrong <- struct{}{}:
		defer func() { <-g.wrong }()
	case <-r.Context().Done():
		return false
	}
	timer := time.NewTimer(wrongWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	return false
}
