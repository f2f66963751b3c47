package console

import (
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Up to these limits, refused logins become entries of the audit log. It is kept for
// good, and strangers must not be able to fill it. The relay's own log has all of them.
const (
	refusedAtOnce = 100
	refusedAgain  = 10 * time.Minute // until one more fits
)

// refusals records refused logins.
type refusals struct {
	room    *rate.Limiter
	omitted atomic.Int64 // since the last entry
}

func newRefusals() *refusals {
	return &refusals{room: rate.NewLimiter(rate.Every(refusedAgain), refusedAtOnce)}
}

// refused records that a login was refused. account is empty if it is not known which. An
// entry says how many earlier ones were left out.
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
