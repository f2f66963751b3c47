package session

import (
	"cmp"
	"context"
	"errors"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/wire"
)

// headStart is how long an address is tried alone before the next is tried too. If nobody is there,
// as with a node that was just lost, there is no error: over UDP there is only silence, and an
// attempt would last until its limit.
const headStart = 1500 * time.Millisecond

// attempted is the result of one of several attempts.
type attempted struct {
	session *Session
	err     error
	addr    string
	turn    int
}

// ConnectAny makes a session at one of several addresses of a relay and sends Hello, as Connect
// does, and returns the address to which its result belongs. It starts with the first address. Each
// further one joins after headStart, or once all before it have failed, and the first that is
// welcomed wins. Once the token is refused, no more addresses are tried. If none is welcomed, the
// error is the most informative one; among equals, the earliest address's. Everything that it
// started has ended when it returns.
func (d *Dialer) ConnectAny(ctx context.Context, addrs []string, j Joining) (*Session, string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan attempted)
	begun, running := 0, 0
	begin := func() {
		addr, turn := addrs[0], begun
		addrs = addrs[1:]
		begun++
		running++
		go func() { // waited for below
			s, err := d.Connect(ctx, addr, j)
			results <- attempted{s, err, addr, turn}
		}()
	}
	begin()
	turn := time.NewTimer(headStart)
	defer turn.Stop()
	best := attempted{}
	for running > 0 {
		select {
		case <-turn.C:
		case r := <-results:
			running--
			switch {
			case r.err == nil && best.session != nil:
				r.session.End("another address was quicker")
			case r.err == nil:
				best, addrs = r, nil
				cancel()
			case best.session == nil && r.saysMore(best):
				best = r
			}
			if control.Final(r.err) {
				addrs = nil // the others would say the same, but those under way may know better
			}
			if running > 0 {
				continue
			}
		}
		if len(addrs) > 0 && ctx.Err() == nil {
			begin()
			turn.Reset(headStart)
		}
	}
	return best.session, best.addr, best.err
}

// saysMore reports whether the failure r is more informative than another, or than none.
func (r attempted) saysMore(other attempted) bool {
	return other.err == nil || cmp.Or(cmp.Compare(telling(r.err), telling(other.err)), other.turn-r.turn) > 0
}

// telling rates how much an error says about why there is no session: most if it came from the
// relay.
func telling(err error) int {
	var p *wire.Problem
	switch {
	case control.Final(err):
		return 3
	case errors.As(err, &p) && p.Code != wire.CodeHere:
		return 2
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return 0
	}
	return 1
}
