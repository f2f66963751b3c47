package relay

import (
	"context"
	"errors"
	"net/http"

	"adit/tunnel/relay/ledger"
)

// BeginChange is called before ctx's actor changes something, what being how it
// was asked for; see ledger.Ledger.Begin.
func (r *Relay) BeginChange(ctx context.Context, what string) (end func(error), err error) {
	end, err = r.ledger.Begin(ctx, what)
	if errors.Is(err, ledger.ErrFull) {
		return nil, bad(http.StatusServiceUnavailable, "unavailable", "",
			"the audit log is away, and too many changes wait for it, so nothing was changed; try again in a moment")
	}
	return end, err
}

// Record writes a change that was made into the audit log, in the name of ctx's
// actor.
func (r *Relay) Record(ctx context.Context, action, target string, detail any) {
	r.ledger.Record(ctx, action, target, detail)
}
