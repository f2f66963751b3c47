package operator

import (
	"context"
	"errors"
	"net/http"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/ledger"
)

// Counters are what only rises.
func (o *Operator) Counters() console.Counters {
	var c console.Counters
	for _, n := range o.cfg.Edge.Visitors() {
		c.Open += n
	}
	f := o.cfg.Edge.Figures()
	c.Bytes = console.Bytes{In: f.BytesIn, Out: f.BytesOut}
	c.Visits, c.Refused, c.Failed = o.cfg.Figures.Counts.Visits()
	return c
}

// Backup is a relay's backup as the admin API gives it.
func (o *Operator) Backup(ctx context.Context) (any, error) {
	b, err := o.cfg.Store.Backup(ctx)
	b.AdminToken = o.cfg.AdminToken
	if err == nil {
		o.Record(ctx, "backup.read", "", nil)
	}
	return b, err
}

// Ready says why the relay should get no new visitors, or "".
func (o *Operator) Ready() string {
	draining, _ := o.cfg.Relay.State()
	switch {
	case draining:
		return "draining"
	case o.cfg.Relay.CutOff():
		return "store_away"
	}
	return ""
}

// StoreCondition is how the store is: one of store.Conditions.
func (o *Operator) StoreCondition() string { return string(o.cfg.Store.Condition()) }

// Metrics are the relay's figures as Prometheus reads them.
func (o *Operator) Metrics() string { return o.cfg.Figures.Text(o.Ready() == "") }

// SessionList is the agents' sessions with this node, oldest first.
func (o *Operator) SessionList() []console.Session { return o.cfg.Relay.SessionList() }

// NodeList is the relay's nodes, this one among them, by name.
func (o *Operator) NodeList() []console.Node { return o.cfg.Relay.NodeList() }

// BeginChange is called before ctx's actor changes something, what being how it
// was asked for; see ledger.Ledger.Begin.
func (o *Operator) BeginChange(ctx context.Context, what string) (end func(error), err error) {
	end, err = o.cfg.Ledger.Begin(ctx, what)
	if errors.Is(err, ledger.ErrFull) {
		return nil, bad(http.StatusServiceUnavailable, "unavailable", "",
			"the audit log is unavailable, and too many changes wait for it, so nothing was changed; try again in a moment")
	}
	return end, err
}

// Record writes a change that was made into the audit log, in the name of ctx's
// actor.
func (o *Operator) Record(ctx context.Context, action, target string, detail any) {
	o.cfg.Ledger.Record(ctx, action, target, detail)
}
