package relay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"adit/tunnel/relay/config"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/quota"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// target reads what the operator calls a target: a domain or its one label, a
// wildcard as *.shop, tcp.PORT or udp.PORT, or a private tunnel as CLIENT/NAME.
func (r *Relay) target(text string) (string, error) {
	text = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "."))
	if network, port, ok := store.PortOf(text); ok {
		if port < 1 || port > 65535 {
			return "", bad(http.StatusBadRequest, "invalid_parameter", "target", "the port must be 1 to 65535")
		}
		return store.TargetPort(network, port), nil
	}
	if strings.Contains(text, "/") {
		client, name, err := wire.ParsePrivate(text)
		if err != nil {
			return "", bad(http.StatusBadRequest, "invalid_parameter", "target", "%q is not a private tunnel, which is CLIENT/NAME", text)
		}
		return store.TargetPrivate(client, name), nil
	}
	text, base := r.spelledOut(text)
	if !config.ValidName(base) {
		return "", bad(http.StatusBadRequest, "invalid_parameter", "target", "%q is neither a domain nor tcp.PORT, udp.PORT or CLIENT/NAME", text)
	}
	return store.TargetDomain(text), nil
}

func (o operator) shownPolicy(p store.StoredPolicy) (console.Policy, error) {
	v := console.Policy{Tag: tagOf(p), Target: shown(p.Target), ChangedAt: p.Changed, SetBy: setByOperator}
	if p.By != "" {
		v.SetBy = p.By
		if c, ok := o.store.Clients.ByID(p.By); ok {
			v.SetBy = c.Name
		}
	}
	d, err := policy.ReadStored(p.Document)
	if err = cmp.Or(p.Fault, err); err != nil {
		return v, err
	}
	v.Policy = d.Redacted()
	return v, nil
}

// tagOf tells a policy from what was there before: by its time, as that is its own,
// also through a backup, while revisions rise with changes of its claim.
func tagOf(p store.StoredPolicy) string { return timeTag(p.Changed) }

// expectPolicy is what a change that expects a policy has against another one.
func expectPolicy(target string, e console.Expected) store.Against[store.StoredPolicy] {
	return expecting(e, tagOf, "the policy of %s has changed since it was read, so nothing was changed; read it again", shown(target))
}

func (o operator) PolicyList() []console.Policy {
	list := []console.Policy{}
	for _, p := range o.store.Policies.List() {
		v, err := o.shownPolicy(p)
		if err != nil {
			o.log.Error("a stored policy does not parse", "target", p.Target, "error", err)
		}
		list = append(list, v)
	}
	return list
}

func noPolicy(target string) error {
	return bad(http.StatusNotFound, "not_found", "", "no policy is set for %s", shown(target))
}

func (o operator) Policy(text string) (console.Policy, error) {
	target, err := o.target(text)
	if err != nil {
		return console.Policy{}, err
	}
	p, ok := o.store.Policies.Get(target)
	if !ok {
		return console.Policy{}, noPolicy(target)
	}
	return o.shownPolicy(p)
}

// SetPolicy stores a policy. A user that comes without a password, and a webhook
// without secrets, keep those that the policy before had, since they are not shown.
func (o operator) SetPolicy(ctx context.Context, text string, document []byte, e console.Expected) (console.Policy, error) {
	target, err := o.target(text)
	if err != nil {
		return console.Policy{}, err
	}
	return o.setPolicy(ctx, target, document, "", expectPolicy(target, e))
}

// setByOperator is who set a policy that no client did.
const setByOperator = "operator"

// setPolicy stores a policy that by, a client's id or "" for the operator, sets.
func (o operator) setPolicy(ctx context.Context, target string, document []byte, by string, against store.Against[store.StoredPolicy]) (console.Policy, error) {
	if all := o.leader(store.DomainOf(target)); all != "" {
		return console.Policy{}, bad(http.StatusConflict, "conflict", "", "%s is led by the tunnel of %s, whose policy is the one for it; change that, or give the name a tunnel of its own first", shown(target), all)
	}
	var d policy.Document
	var silent silence
	if old := o.policies.Get(target); old != nil && json.Unmarshal(document, &d) == nil {
		if of := silenceOf(d); of.any() {
			// Unknown fields are found before they would be lost here.
			if _, err := policy.Parse(document); isSecretMissing(err) {
				if document, err = json.Marshal(of.fill(d, old.Document())); err != nil {
					return console.Policy{}, err
				}
				silent = of
			}
		}
	}
	d, err := policy.Parse(document)
	if err == nil && by != "" {
		err = d.Affordable()
	}
	if err == nil {
		err = o.knownProvider(d.SignIn)
	}
	var field *policy.FieldError
	if errors.As(err, &field) {
		return console.Policy{}, bad(http.StatusBadRequest, "invalid_parameter", field.Field, "%s", field.Error())
	}
	if err != nil {
		return console.Policy{}, err
	}
	err = o.store.Policies.Change(ctx, target, by, func(old store.StoredPolicy, _ bool) ([]byte, error) {
		next := d
		if before, err := policy.ReadStored(old.Document); silent.any() && err == nil { // somebody may have set one meanwhile
			next = silent.fill(d, before)
		}
		return next.Stored()
	}, against)
	if err != nil {
		return console.Policy{}, err
	}
	o.log.Info("policy set", "target", shown(target))
	o.Record(ctx, "policy.set", shown(target), d.Noted())
	return o.Policy(shown(target))
}

func (o operator) DeletePolicy(ctx context.Context, text string, e console.Expected) error {
	target, err := o.target(text)
	if err != nil {
		return err
	}
	return o.deletePolicy(ctx, target, expectPolicy(target, e))
}

// deletePolicy deletes a policy, unless something is against it.
func (o operator) deletePolicy(ctx context.Context, target string, against store.Against[store.StoredPolicy]) error {
	if err := o.store.Policies.DeleteUnless(ctx, target, against); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			return noPolicy(target)
		}
		return err
	}
	o.log.Info("policy deleted", "target", shown(target))
	o.Record(ctx, "policy.delete", shown(target), nil)
	return nil
}

func (o operator) Explain(q console.Question) (console.Explanation, error) {
	target, err := o.target(q.Target)
	if err != nil {
		return console.Explanation{}, err
	}
	if all := o.leader(store.DomainOf(target)); all != "" {
		target = store.TargetDomain(all)
	}
	addr, err := netip.ParseAddr(strings.TrimSpace(q.Address))
	if err != nil {
		return console.Explanation{}, bad(http.StatusBadRequest, "invalid_parameter", "address", "%q is not an address", q.Address)
	}
	now := time.Now()
	if q.At != "" {
		if now, err = time.Parse(time.RFC3339, q.At); err != nil {
			return console.Explanation{}, bad(http.StatusBadRequest, "invalid_parameter", "at", "%q is not a time as 2026-11-01T00:00:00Z", q.At)
		}
	}
	e := console.Explanation{
		Target: shown(target), Path: q.Path, Country: o.geo.Place(addr), Node: o.node, Allowed: true, Steps: []policy.Step{},
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
	p := o.policies.Get(target)
	if p == nil {
		e.Detail = "no policy is set: every visitor is let in"
		return e, nil
	}
	isHTTP := store.DomainOf(target) != "" && q.Type != wire.TypeTLS
	d, steps := p.Explain(policy.Request{
		Addr: addr, HTTP: isHTTP, BodySize: -1, User: q.User, Password: q.Password, HasUser: q.User != "",
		Identity: identityOf(q, p.SignIn(), now), Certificate: presentedBy(q.Type, presented), Target: pathOf(q.Path), Signed: q.Signed,
	}, now)
	e.Allowed, e.Rule, e.Detail, e.Steps, e.Shadow = d.Allowed, d.Rule, d.Detail, steps, p.Shadow()
	return e, nil
}

// pathOf is the path that a question is about, as visitors ask for it.
func pathOf(asked string) string {
	if strings.HasPrefix(asked, "/") {
		return asked
	}
	return "/" + asked
}

// presentedBy is what a visitor of a tunnel's type can present.
func presentedBy(tunnelType string, p *policy.Presented) *policy.Presented {
	if tunnelType == wire.TypeHTTP {
		return nil
	}
	return p
}

// identityOf is the visitor whom a question is about; nil: one who has not signed in.
func identityOf(q console.Question, s *policy.SignIn, now time.Time) *policy.Identity {
	if s == nil || q.Email == "" && len(q.Groups) == 0 {
		return nil
	}
	return &policy.Identity{
		Provider: s.Provider, Email: strings.ToLower(q.Email), Subject: cmp.Or(q.Email, "a member of "+strings.Join(q.Groups, ", ")),
		Groups: q.Groups, Until: now.Add(time.Hour),
	}
}

// quotaStep says whether the client that has a target has used up its month.
func (o operator) quotaStep(target string) (policy.Step, bool) {
	claim, ok := o.store.Claims.Get(target)
	if !ok {
		return policy.Step{}, false
	}
	c, ok := o.store.Clients.ByID(claim.ClientID)
	if !ok || c.Scope.Monthly == 0 {
		return policy.Step{}, false
	}
	v := o.shownClient(c, connected{})
	step := policy.Step{Rule: policy.RuleQuota, Refuses: v.Usage.State == quota.Stopped, Detail: fmt.Sprintf(
		"the client %s has moved %d of %d bytes in %s", c.Name, v.Usage.BytesIn+v.Usage.BytesOut, c.Scope.Monthly, v.Usage.Month)}
	return step, step.Refuses
}
