package operator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/policies"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/quota"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// target parses the operator's name for a target.
func (o *Operator) target(text string) (string, error) {
	target, err := o.cfg.Names.Target(text)
	if err != nil {
		return "", bad(http.StatusBadRequest, "invalid_parameter", "target", "%s", err)
	}
	return target, nil
}

// shownPolicy returns a policy in the console's form. If the policy cannot be read,
// everything except its document is filled in.
func (o *Operator) shownPolicy(p store.StoredPolicy) (console.Policy, error) {
	d, err := policies.Read(p)
	return console.Policy{
		Tag: policies.Tag(p), Target: names.Shown(p.Target), ChangedAt: p.Changed, SetBy: o.cfg.Policies.SetBy(p), Policy: d,
	}, err
}

// PolicyList returns the policies that are set, without their secrets.
func (o *Operator) PolicyList() []console.Policy {
	list := []console.Policy{}
	for _, p := range o.cfg.Store.Policies.List() {
		v, err := o.shownPolicy(p)
		if err != nil {
			o.cfg.Log.Error("a stored policy does not parse", "target", p.Target, "error", err)
		}
		list = append(list, v)
	}
	return list
}

func noPolicy(target string) error {
	return bad(http.StatusNotFound, "not_found", "", "no policy is set for %s", names.Shown(target))
}

// Policy returns one of PolicyList, by the operator's name for its target.
func (o *Operator) Policy(text string) (console.Policy, error) {
	target, err := o.target(text)
	if err != nil {
		return console.Policy{}, err
	}
	p, ok := o.cfg.Store.Policies.Get(target)
	if !ok {
		return console.Policy{}, noPolicy(target)
	}
	return o.shownPolicy(p)
}

// policyError translates the book's errors about a target for the operator.
func policyError(target string, err error) error {
	var field *policy.FieldError
	var unknown *policies.UnknownProviderError
	var led *policies.LedError
	var changed *policies.ChangedError
	switch {
	case errors.As(err, &field):
		return bad(http.StatusBadRequest, "invalid_parameter", field.Field, "%s", field)
	case errors.As(err, &unknown):
		return bad(http.StatusBadRequest, "invalid_parameter", unknown.Field(), "%s", unknown)
	case errors.As(err, &led):
		return bad(http.StatusConflict, "conflict", "", "%s", led)
	case errors.As(err, &changed):
		return bad(http.StatusPreconditionFailed, "precondition_failed", "", "%s", changed)
	case errors.Is(err, bucket.ErrNotFound):
		return noPolicy(target)
	}
	return err
}

// SetPolicy stores a policy; see policies.Book.Set.
func (o *Operator) SetPolicy(ctx context.Context, text string, document []byte, e console.Expected) (console.Policy, error) {
	target, err := o.target(text)
	if err != nil {
		return console.Policy{}, err
	}
	if err := o.cfg.Policies.Set(ctx, policies.Change{Target: target, Expected: e}, document); err != nil {
		return console.Policy{}, policyError(target, err)
	}
	return o.Policy(text)
}

// DeletePolicy deletes a policy; see policies.Book.Delete.
func (o *Operator) DeletePolicy(ctx context.Context, text string, e console.Expected) error {
	target, err := o.target(text)
	if err != nil {
		return err
	}
	return policyError(target, o.cfg.Policies.Delete(ctx, policies.Change{Target: target, Expected: e}))
}

// Explain returns what would happen to a visitor, and by which rules.
func (o *Operator) Explain(q console.Question) (console.Explanation, error) {
	target, err := o.target(q.Target)
	if err != nil {
		return console.Explanation{}, err
	}
	if all := o.cfg.Names.Leader(claims.DomainOf(target)); all != "" {
		target = claims.TargetDomain(all)
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(q.Address))
	if err != nil {
		return console.Explanation{}, bad(http.StatusBadRequest, "invalid_parameter", "address", "%q is not an address", q.Address)
	}
	now := time.Now()
	if q.At != "" {
		if now, err = time.Parse(time.RFC3339, q.At); err != nil {
			return console.Explanation{}, bad(http.StatusBadRequest, "invalid_parameter", "at", "%q is not a time such as 2026-11-01T00:00:00Z", q.At)
		}
	}
	e := console.Explanation{
		Target: names.Shown(target), Path: q.Path, Country: o.cfg.Geo.Place(addr), Node: o.cfg.Node, Allowed: true, Steps: []policy.Step{},
	}
	if step, refuses := o.quotaStep(target); refuses {
		e.Allowed, e.Rule, e.Detail, e.Steps = false, step.Rule, step.Detail, append(e.Steps, step)
		return e, nil
	}
	var presented *policy.Presented
	if q.Certificate != "" {
		if presented, err = policy.ReadPresented(q.Certificate); err != nil {
			fault := policy.FieldError{Field: "certificate", Message: err.Error()}
			return console.Explanation{}, bad(http.StatusBadRequest, "invalid_parameter", fault.Field, "%s", fault.Error())
		}
	}
	p := o.cfg.Policies.Table.Get(target)
	if p == nil {
		e.Detail = "no policy is set: every visitor is let in"
		return e, nil
	}
	isHTTP := claims.DomainOf(target) != "" && q.Type != wire.TypeTLS
	d, steps := p.Explain(policy.Request{
		Addr: addr, HTTP: isHTTP, BodySize: -1, User: q.User, Password: q.Password, HasUser: q.User != "",
		Identity: identityOf(q, p.SignIn(), now), Certificate: presentedBy(q.Type, presented), Target: pathOf(q.Path), Signed: q.Signed,
	}, now)
	e.Allowed, e.Rule, e.Detail, e.Steps, e.Shadow = d.Allowed, d.Rule, d.Detail, steps, p.Shadow()
	return e, nil
}

// pathOf returns the path that a question is about, in the form in which visitors request
// it.
func pathOf(asked string) string {
	if strings.HasPrefix(asked, "/") {
		return asked
	}
	return "/" + asked
}

// presentedBy returns what a visitor of a tunnel's type can present.
func presentedBy(tunnelType string, p *policy.Presented) *policy.Presented {
	if tunnelType == wire.TypeHTTP {
		return nil
	}
	return p
}

// identityOf returns the visitor that a question is about, or nil for one that has not
// signed in.
func identityOf(q console.Question, s *policy.SignIn, now time.Time) *policy.Identity {
	if s == nil || q.Email == "" && len(q.Groups) == 0 {
		return nil
	}
	return &policy.Identity{
		Provider: s.Provider, Email: policy.LowerEmail(q.Email), Subject: cmp.Or(q.Email, "a member of "+strings.Join(q.Groups, ", ")),
		Groups: q.Groups, Until: now.Add(time.Hour),
	}
}

// quotaStep says whether the client that has a target has used up its monthly bytes.
func (o *Operator) quotaStep(target string) (policy.Step, bool) {
	claim, ok := o.cfg.Store.Claims.Get(target)
	if !ok {
		return policy.Step{}, false
	}
	c, ok := o.cfg.Store.Clients.ByID(claim.ClientID)
	if !ok || c.Scope.Monthly == 0 {
		return policy.Step{}, false
	}
	v := o.shownClient(c, Connected{})
	step := policy.Step{Rule: policy.RuleQuota, Refuses: v.Usage.State == quota.Stopped, Detail: fmt.Sprintf(
		"the client %s has moved %d of %d bytes in %s", c.Name, v.Usage.BytesIn+v.Usage.BytesOut, c.Scope.Monthly, v.Usage.Month)}
	return step, step.Refuses
}
