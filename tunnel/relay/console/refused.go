package console

import (
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Refused logins are entries of the audit log up to these bounds: it is kept for
// good, and strangers must not be able to fill it. All are in the relay's own log.
const (
	refusedAtOnce = 100
	refusedAgain  = 10 * time.Minute // for one more
)

// refusals notes logins that were refused.
type refusals struct {
	room    *rate.Limiter
	omitted atomic.Int64 // since the last entry
}

func newRefusals() *refusals {
	return &refusals{room: rate.NewLimiter(rate.Every(refusedAgain), refusedAtOnce)}
}

// refused notes that a login was refused, for an account or, without a name, for
// none that is known. An entry says how many before it had no room.
func (c *Console) refused(r *http.Request, account string) {
	c.log.Warn("console: a login was refused", "address", addressOf(r))
	if !c.refusals.room.Allow() {
		c.refusals.omitted.Add(1)
		return
	}
	var detail map[string]any
	if n := c.refusals.omitted.Swap(0); n > 0 {
		detail = map[string]any{"omitted": n}
	}
	c.note(r, "login.refused", account, detail)
}
