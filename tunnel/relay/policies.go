package relay

import (
	"context"

	"adit/tunnel/relay/policy"
)

type policies struct{}

func (p *policies) get(string) *policy.Policy { return nil }
func (r *Relay) openPolicies() error          { return nil }
func (r *Relay) watchGeo(context.Context)     {}
