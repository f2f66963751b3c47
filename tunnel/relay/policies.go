package relay

import (
	"context"

	"adit/tunnel/relay/geo"
	"adit/tunnel/relay/policies"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
)

// preparePolicies creates the parts that decide who is let in; openPolicies fills them.
func (r *Relay) preparePolicies() {
	r.geo = &geo.File{Path: r.cfg.Geo.Database, Every: r.opts.geoCheck, Log: r.log}
	r.policies = policies.New(policies.Config{
		Geo: func() policy.Geo {
			if db := r.geo.Database(); db != nil {
				return db
			}
			return nil
		},
		Providers: r.providerNames(), Recheck: func(targets ...string) { r.edge.Recheck(targets...) },
		Serves: func(target string) bool { return r.edge.Serves(target) },
		// One of several nodes may hear of the policy before it hears that the claim was
		// given back.
		Claimed: func(target string) bool {
			_, claimed := r.store.Claims.Get(target)
			return claimed && r.store.Nodes == nil
		},
		Ask: func(ctx context.Context, target string) (bool, error) { return r.store.Claims.Ask(ctx, target) },
		Log: r.log,
	})
}

// openPolicies reads the policies and follows changes by this node and others.
func (r *Relay) openPolicies() error {
	if err := r.geo.Read(); err != nil {
		return err
	}
	r.store.Policies.OnValues(func(target string, stored store.StoredPolicy, exists bool) {
		r.policies.Set(target, stored, exists)
		r.task(func() { r.edge.Recheck(target) })
	})
	return nil
}

// watchGeo follows the geo database.
func (r *Relay) watchGeo(ctx context.Context) { r.geo.Watch(ctx, r.policies.Moved) }
