package relay

import (
	"context"
	"fmt"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/datadir"
)

// openSetup makes or reads the set-up code, or removes its file if the console
// has an account.
func (r *Relay) openSetup() (err error) {
	if _, _, done := r.store.Operators.Get("setup"); done {
		if err := datadir.RemoveSetupCode(r.cfg.DataDir); err != nil {
			return fmt.Errorf("remove the set-up code: %w", err)
		}
		return nil
	}
	r.setup, err = datadir.SetupCode(r.cfg.DataDir)
	return err
}

// SetupCode makes the console's first administrator; "" if there is one.
func (r *Relay) SetupCode() string { return r.setup }

// setupDone forgets the set-up code.
func (r *Relay) setupDone() {
	if err := datadir.RemoveSetupCode(r.cfg.DataDir); err != nil {
		r.log.Warn("the set-up code's file is left behind; it is worth nothing any more", "error", err)
	}
}

// Counters are what only rises.
func (o operator) Counters() console.Counters {
	var c console.Counters
	for _, n := range o.edge.Visitors() {
		c.Open += n
	}
	f := o.edge.Figures()
	c.Bytes = console.Bytes{In: f.BytesIn, Out: f.BytesOut}
	for i := range o.counts.visits {
		for j := range o.counts.visits[i] {
			n := o.counts.visits[i][j].Load()
			c.Visits += n
			switch countedOutcomes[j] {
			case "refused":
				c.Refused += n
			case "5xx":
				c.Failed += n
			}
		}
	}
	return c
}

// Backup is a relay's backup as the admin API gives it.
func (o operator) Backup(ctx context.Context) (any, error) {
	b, err := o.store.Backup(ctx)
	b.AdminToken = o.admin
	if err == nil {
		o.Record(ctx, "backup.read", "", nil)
	}
	return b, err
}
