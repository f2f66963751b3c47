package operator

import (
	"context"
	"errors"
	"net/http"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/ledger"
)

// Counters returns the figures for the console.
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

// Backup returns a backup of the relay, in the form of the admin API.
func (o *Operator) Backup(ctx context.Context) (any, error) {
	b, err := o.cfg.Store.Backup(ctx)
	b.AdminToken = o.cfg.AdminToken
	if err == nil {
		o.Record(ctx, "backup.read", "", nil)
	}
	return b, err
}

// Ready returns why the relay should get no new visitors, or "".
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

// StoreCondition returns the condition of the store: one of store.Conditions.
func (o *Operator) StoreCondition() string { return string(o.cfg.Store.Condition()) }

// Metrics returns the relay's figures in the format of Prometheus.
func (o *Operator) Metrics() string { return o.cfg.Figures.Text(o.Ready() == "") }

// SessionList returns the agents' sessions with this node, oldest first.
func (o *Operator) SessionList() []console.Session { return o.cfg.Relay.SessionList() }

// NodeList returns the relay's nodes, including this one, by name.
func (o *Operator) NodeList() []console.Node { return o.cfg.Relay.NodeList() }

// BeginChange must be called before ctx's actor changes something. what describes the
// request; see ledger.Ledger.Begin.
func (o *Operator) BeginChange(ctx context.Context, what string) (end func(error), err error) {
	end, err = o.cfg.Ledger.Begin(ctx, what)
	if errors.Is(err, ledger.ErrFull) {
		return nil, bad(http.StatusServiceUnavailable, "unavailable", "",
			"the audit log is unavailable, and too many changes wait for it, so nothing was changed; try again in a moment")
	}
	return end, err
}

// Record writes a completed change into the audit log, in the name of ctx's actor.
func (o *Operator) Record(ctx context.Context, action, target string, detail any) {
	o.cfg.Ledger.Record(ctx, action, target, detail)
}
