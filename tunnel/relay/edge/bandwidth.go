package edge

import (
	"net/netip"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/shape"
)

// bind connects an endpoint to what limits its bandwidth: its policy and its client's account.
// It is called when a tunnel is attached and when either of them changes.
func (e *Edge) bind(ep *routing.Endpoint) {
	ep.Meter.Bind(func(account *shape.Account) (_ *shape.Account, in, out *shape.Bucket) {
		if list := ep.Backends(); len(list) > 0 {
			account = list[0].Agent.Account
		}
		if p := e.cfg.Policy(ep.Target); p != nil && p.Document().Bandwidth > 0 {
			in, out = p.Bandwidth()
		}
		return account, in, out
	})
}

// Bound applies an account's changed bandwidth to the endpoints of its client.
func (e *Edge) Bound(a *shape.Account) {
	for _, ep := range e.table.All() {
		if ep.Meter.IsOn(a) {
			e.bind(ep)
		}
	}
}

// Stop starts or ends the refusal of an account's visitors. When it starts, current visits end
// as well.
func (e *Edge) Stop(a *shape.Account, stop bool) {
	if !a.Stop(stop) || !stop {
		return
	}
	for _, ep := range e.table.All() {
		if !ep.Meter.IsOn(a) {
			continue
		}
		ep.Visits.EndAll(policy.RuleQuota)
		ep.EndFlows(func(*routing.Backend, netip.Addr) bool { return true })
	}
}
