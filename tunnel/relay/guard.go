package relay

import (
	"context"
	"errors"

	"adit/tunnel/relay/policies"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/wire"
)

// fieldPolicy is the field of a claim that has its policy.
const fieldPolicy = "policy"

// guard has the policy that a claim brings be in force at its target, which the client
// has by now, before anybody is served there. s.claiming is held.
func (s *session) guard(ctx context.Context, target string, c wire.Claim) error {
	if len(c.Policy) == 0 {
		return nil
	}
	if _, ok := s.relay.store.Policies.Get(target); ok && !c.PolicyReplaces {
		return nil // whoever set it came after the claim that brought one
	}
	if !s.scope().OwnPolicies {
		return wire.Forbidden(fieldPolicy, "the relay's operator has not let this client say who is let in; ask for `adit relay client set %s --own_policies` at the relay", s.client.Name)
	}
	err := s.putPolicy(ctx, target, c.Policy, nil)
	var no *wire.Problem
	if errors.As(err, &no) {
		return &wire.Problem{Code: no.Code, Message: no.Message, Field: fieldPolicy}
	}
	return err
}

// maxOwnerless is how many policies a client leaves at names and ports that nobody has:
// those of ephemeral tunnels, which may come back to them.
const maxOwnerless = 1000

// dropOwnerless deletes the oldest of the policies that the client has left at names and
// ports that nobody has, until there are no more than most.
func (s *session) dropOwnerless(ctx context.Context, most int) error {
	left := s.relay.store.Policies.Ownerless(s.client.ID)
	for _, target := range left[:max(0, len(left)-most)] {
		err := s.relay.book.Delete(s.acting(ctx), policies.Change{Target: target, By: s.client.ID, Against: s.own})
		if err != nil && !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, errOperators) {
			return err
		}
	}
	return nil
}

// giveBack takes a target from a tunnel of the client. The policy that the client had
// set goes with it, if nobody else has the target: it would be of a name or port that
// is nobody's.
func (s *session) giveBack(ctx context.Context, target, key string) error {
	st := s.relay.store
	p, guarded := st.Policies.Get(target)
	if err := st.Claims.Release(ctx, target, s.client.ID, s.hello.Instance, key); err != nil {
		return err
	}
	if _, taken := st.Claims.Get(target); taken || !guarded || p.By != s.client.ID {
		return nil
	}
	// Another agent of the client may claim the target meanwhile, with a policy.
	tag := policies.Tag(p)
	change := policies.Change{Target: target, By: s.client.ID, Expected: func(now string) bool { return now == tag }, Against: s.own}
	err := s.relay.book.Delete(s.acting(ctx), change)
	var changed *policies.ChangedError
	if err != nil && !errors.Is(err, bucket.ErrNotFound) && !errors.Is(err, errOperators) && !errors.As(err, &changed) {
		s.relay.log.Warn("the policy of a name or port that was given back is left", "target", target, "error", err)
	}
	return nil
}
