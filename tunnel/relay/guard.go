package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"adit/tunnel/relay/policies"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/wire"
)

// fieldPolicy is the field of a claim that contains its policy.
const fieldPolicy = "policy"

// guard puts the policy that a tunnel brings in force at its target before anybody is
// served there. The client must already have the target. s.claiming must be held.
func (s *session) guard(ctx context.Context, target string, p placing) error {
	there, guarded := s.relay.store.Policies.Get(target)
	document := p.claim.Policy
	holds := p.claim.PolicyHolds && len(document) > 0
	switch own := there.By == s.client.ID; {
	case !guarded:
	case len(document) == 0:
		return nil
	case holds && own:
		if sameStored(there, document) {
			return nil
		}
	case !p.claim.PolicyReplaces:
		return nil // whoever set it did so after the claim that brought one
	}
	var before json.RawMessage
	var err error
	if !holds {
		before, err = s.policyBefore(target, p)
	}
	switch {
	case err != nil:
		s.relay.log.Error("the policy of what a tunnel had cannot be read", "target", target, "error", err)
		return &wire.Problem{Code: wire.CodeForbidden, Field: fieldPolicy, Message: "the relay cannot read this tunnel's policy; set it again, or ask the relay's operator"}
	case before != nil:
		document = before
	}
	if len(document) == 0 {
		return nil
	}
	if !s.scope().OwnPolicies {
		return wire.Forbidden(fieldPolicy, "the relay's operator does not let this client choose its visitors; ask for `adit relay client set %s --own_policies` at the relay", s.client.Name)
	}
	err = s.putPolicy(ctx, target, document, nil)
	var no *wire.Problem
	if errors.As(err, &no) {
		code := no.Code
		if code == wire.CodeLimit { // too many changes for now: the agent asks again
			code = wire.CodeUnavailable
		}
		return &wire.Problem{Code: code, Message: no.Message, Field: fieldPolicy}
	}
	return err
}

// sameStored reports whether a document is exactly what is stored. Then there is nothing
// to write, and no visit has to be checked again.
func sameStored(there store.StoredPolicy, document json.RawMessage) bool {
	var given policy.Document
	if there.Fault != nil || json.Unmarshal(document, &given) != nil || slices.ContainsFunc(given.BasicAuth, func(u policy.User) bool { return u.Password != "" }) {
		return false // a password that is hashed again has another hash
	}
	d, err := policy.Parse(document)
	if err != nil {
		return false
	}
	stored, err := d.Stored()
	return err == nil && bytes.Equal(stored, there.Document)
}

// policyBefore returns the policy that the client set for the tunnel's previous target,
// if the tunnel is now to have target instead. The document includes its secrets. It is
// nil if there is none.
func (s *session) policyBefore(target string, p placing) (json.RawMessage, error) {
	had := make([]string, 0, len(p.held)+1)
	for _, c := range p.held {
		had = append(had, c.Target)
	}
	if p.claim.PolicyOf != "" {
		if before, err := s.relay.names.Target(p.claim.PolicyOf); err == nil {
			had = append(had, before)
		}
	}
	if slices.Contains(had, target) {
		return nil, nil
	}
	for _, before := range had {
		v, ok := s.relay.store.Policies.Get(before)
		if !ok || v.By != s.client.ID {
			continue
		}
		d, err := policy.ReadStored(v.Document)
		if err = cmp.Or(v.Fault, err); err != nil {
			return nil, err
		}
		return json.Marshal(d)
	}
	return nil, nil
}

// maxOwnerless is how many policies a client may leave at names and ports that nobody
// has: other tunnels may come to them.
const maxOwnerless = 1000

// dropOwnerless deletes the oldest policies that the client has left at names and ports
// that nobody has, until no more than most are left.
func (s *session) dropOwnerless(ctx context.Context, most int) error {
	left := s.relay.store.Policies.Ownerless(s.client.ID)
	for _, p := range left[:max(0, len(left)-most)] {
		if err := s.relay.book.Delete(s.acting(ctx), s.leaving(p)); err != nil && !notLeft(err) {
			return err
		}
	}
	return nil
}

// giveBack releases a target from a tunnel of the client. If drop is set, the policy that
// the client had set is deleted as well, unless someone still has the target.
func (s *session) giveBack(ctx context.Context, target, key string, drop bool) error {
	st := s.relay.store
	p, guarded := st.Policies.Get(target)
	if err := st.Claims.Release(ctx, target, s.client.ID, s.hello.Instance, key); err != nil {
		return err
	}
	if _, taken := st.Claims.Get(target); !drop || taken || !guarded || p.By != s.client.ID {
		return nil
	}
	if err := s.relay.book.Delete(s.acting(ctx), s.leaving(p)); err != nil && !notLeft(err) {
		s.relay.log.Warn("the policy of a name or port that was given back is left", "target", target, "error", err)
	}
	return nil
}

// notLeft reports whether a policy that was left behind has been deleted, or is not left
// behind any more.
func notLeft(err error) bool {
	var changed *policies.ChangedError
	return errors.Is(err, bucket.ErrNotFound) || errors.As(err, &changed)
}

// leaving describes the deletion of a policy at a target that nobody had when the policy
// was read. In the meantime another agent of the client may claim the target, with a
// policy of its own or with this one, and the operator may set one.
func (s *session) leaving(p store.StoredPolicy) policies.Change {
	return policies.Change{Target: p.Target, By: s.client.ID, Against: func(v store.StoredPolicy, exists bool) error {
		if exists && (v.Claims != p.Claims || policies.Tag(v) != policies.Tag(p)) {
			return &policies.ChangedError{Target: p.Target}
		}
		return nil
	}}
}
