package relay

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/policies"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/signature"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/wire"
)

// targetOf returns the name or port that a tunnel of the session has.
func (s *session) targetOf(key string) (string, error) {
	s.mu.Lock()
	t := s.tunnels[key]
	s.mu.Unlock()
	if t != nil {
		return t.face.Target, nil
	}
	for _, c := range s.relay.store.Claims.OfTunnel(s.client.ID, s.hello.Instance, key) {
		return c.Target, nil
	}
	return "", &wire.Problem{Code: wire.CodeInvalid, Message: "the tunnel has no name or port here; start it first"}
}

// mayEdit reports whether the client may set the policy of a target that it has.
func (s *session) mayEdit(target string) bool {
	p, ok := s.relay.store.Policies.Get(target)
	return s.scope().OwnPolicies && (!ok || p.By == s.client.ID)
}

// noPolicyTag is the tag of a target without a policy. For other targets, see
// policies.Tag.
const noPolicyTag = "none"

// policy returns the policy of a target, and its tag.
func (s *session) policy(target string) (wire.Policy, string, error) {
	p := wire.Policy{Document: json.RawMessage("{}"), Editable: s.mayEdit(target), Providers: s.relay.providerNames(), Webhooks: signature.Providers(), Certificates: true}
	stored, ok := s.relay.store.Policies.Get(target)
	if !ok {
		return p, noPolicyTag, nil
	}
	d, err := policies.Read(stored)
	if err != nil {
		return p, "", err
	}
	p.Document, err = json.Marshal(d)
	p.SetBy, p.Changed = s.relay.book.SetBy(stored), stored.Changed
	return p, policies.Tag(stored), err
}

// writePolicy answers with the policy of a target.
func (s *session) writePolicy(w http.ResponseWriter, target string) error {
	p, tag, err := s.policy(target)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", strconv.Quote(tag))
	return writeJSON(w, p)
}

// expectedBy returns what a request expects to replace. To an agent, having no policy is
// the same as a policy that lets everybody in.
func expectedBy(r *http.Request) (console.Expected, error) {
	e, err := console.ExpectedBy(r)
	var refusal *console.Error
	if errors.As(err, &refusal) {
		return nil, wire.Invalid(refusal.Field, "%s", refusal.Message)
	}
	if e == nil || err != nil {
		return nil, err
	}
	return func(tag string) bool { return e(tag) || tag == "" && e(noPolicyTag) }, nil
}

func (s *session) servePolicy(w http.ResponseWriter, r *http.Request) error {
	target, err := s.targetOf(r.PathValue("key"))
	if err != nil {
		return err
	}
	return s.writePolicy(w, target)
}

// serveSetPolicy sets the policy of one of the agent's own tunnels. Only the operator may
// change a policy that the operator has set.
func (s *session) serveSetPolicy(w http.ResponseWriter, r *http.Request) error {
	var document json.RawMessage
	if err := readJSON(r, &document); err != nil {
		return err
	}
	e, err := expectedBy(r)
	if err != nil {
		return err
	}
	var target string
	err = s.alone(func() (err error) {
		target, err = s.setOwnPolicy(r, document, e)
		return err
	})
	if err != nil {
		return err
	}
	return s.writePolicy(w, target)
}

// setOwnPolicy sets the policy of the tunnel that r names, and returns the tunnel's name
// or port. s.claiming must be held.
func (s *session) setOwnPolicy(r *http.Request, document json.RawMessage, e console.Expected) (target string, err error) {
	if s.gone.Load() {
		return "", &wire.Problem{Code: wire.CodeUnauthorized, Message: "the session has ended"}
	}
	if target, err = s.targetOf(r.PathValue("key")); err != nil {
		return "", err
	}
	return target, s.putPolicy(r.Context(), target, document, e)
}

// putPolicy sets the policy of a target that the client has, if the client may do that,
// and records the client's change in the audit log.
func (s *session) putPolicy(ctx context.Context, target string, document json.RawMessage, e console.Expected) error {
	switch {
	case !s.scope().OwnPolicies:
		return wire.Forbidden("", "the relay's operator sets the policies of this client's tunnels; ask the operator for the change")
	case !s.mayEdit(target):
		return errOperators
	case !s.relay.trail.leave(s.client.ID):
		return &wire.Problem{Code: wire.CodeLimit, Message: "this client has made too many changes in a short time; try again in a minute"}
	}
	ctx = s.acting(ctx)
	end, err := s.relay.ledger.Begin(ctx, "policy of "+names.Shown(target))
	if err != nil {
		return err
	}
	if err = s.dropOwnerless(ctx, maxOwnerless); err == nil {
		err = s.setPolicy(ctx, target, document, e)
	}
	end(err)
	return err
}

// acting returns a context that names the client as the actor in the audit log.
func (s *session) acting(ctx context.Context) context.Context {
	return audit.WithActor(ctx, audit.Actor{Kind: audit.KindClient, Name: s.client.Name, Address: s.link.RemoteAddr().String()})
}

// own refuses to change a policy that is not the client's: the operator may have set one
// since mayEdit was called.
func (s *session) own(v store.StoredPolicy, exists bool) error {
	if exists && v.By != s.client.ID {
		return errOperators
	}
	return nil
}

var errOperators = wire.Forbidden("", "the relay's operator has set this policy; ask the operator for the change")

func (s *session) setPolicy(ctx context.Context, target string, document json.RawMessage, e console.Expected) error {
	var fields map[string]json.RawMessage
	change := policies.Change{Target: target, By: s.client.ID, Expected: e, Against: s.own}
	if json.Unmarshal(document, &fields) == nil && fields != nil && len(fields) == 0 {
		return policyProblem(s.relay.book.Delete(ctx, change))
	}
	return policyProblem(s.relay.book.Set(ctx, change, document))
}

// policyProblem translates the book's errors for the agent.
func policyProblem(err error) error {
	var field *policy.FieldError
	var unknown *policies.UnknownProviderError
	var led *policies.LedError
	var changed *policies.ChangedError
	switch {
	case errors.As(err, &field):
		return &wire.Problem{Code: wire.CodeInvalid, Field: field.Field, Message: field.Error()}
	case errors.As(err, &unknown):
		return &wire.Problem{Code: wire.CodeInvalid, Field: unknown.Field(), Message: unknown.Error()}
	case errors.As(err, &led):
		return &wire.Problem{Code: wire.CodeInvalid, Message: led.Error()}
	case errors.As(err, &changed):
		return &wire.Problem{Code: wire.CodeChanged, Message: changed.Error()}
	case errors.Is(err, bucket.ErrNotFound): // so there is no policy now
		return nil
	}
	return err
}
