package relay

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/console"
	"adit/tunnel/wire"
)

// targetOf is the name or port that a tunnel of the session has.
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

func (s *session) policy(target string) (wire.Policy, error) {
	p := wire.Policy{Document: json.RawMessage("{}"), Editable: s.mayEdit(target)}
	stored, ok := s.relay.store.Policies.Get(target)
	if !ok {
		return p, nil
	}
	shown, err := operator{s.relay}.shownPolicy(stored)
	if err != nil {
		return p, err
	}
	p.Document, err = json.Marshal(shown.Policy)
	p.SetBy, p.Changed = shown.SetBy, shown.ChangedAt
	return p, err
}

func (s *session) servePolicy(w http.ResponseWriter, r *http.Request) error {
	target, err := s.targetOf(r.PathValue("key"))
	if err != nil {
		return err
	}
	p, err := s.policy(target)
	if err != nil {
		return err
	}
	return writeJSON(w, p)
}

// serveSetPolicy sets the policy of an own tunnel. One that the operator has set
// is the operator's to change.
func (s *session) serveSetPolicy(w http.ResponseWriter, r *http.Request) error {
	var document json.RawMessage
	if err := readJSON(r, &document); err != nil {
		return err
	}
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if s.gone.Load() {
		return &wire.Problem{Code: wire.CodeUnauthorized, Message: "the session has ended"}
	}
	target, err := s.targetOf(r.PathValue("key"))
	if err != nil {
		return err
	}
	switch {
	case !s.scope().OwnPolicies:
		return forbidden("", "the relay's operator sets the policies of this client's tunnels")
	case !s.mayEdit(target):
		return forbidden("", "the relay's operator has set this policy, and it is the operator's to change")
	}
	ctx := audit.WithActor(r.Context(), audit.Actor{Kind: audit.KindClient, Name: s.client.Name, Address: s.link.RemoteAddr().String()})
	if err := s.setPolicy(ctx, target, document); err != nil {
		return err
	}
	p, err := s.policy(target)
	if err != nil {
		return err
	}
	return writeJSON(w, p)
}

func (s *session) setPolicy(ctx context.Context, target string, document json.RawMessage) error {
	o := operator{s.relay}
	var fields map[string]json.RawMessage
	var err error
	if json.Unmarshal(document, &fields) == nil && fields != nil && len(fields) == 0 {
		if _, ok := s.relay.store.Policies.Get(target); ok {
			err = o.DeletePolicy(ctx, shown(target), nil)
		}
	} else {
		_, err = o.setPolicy(ctx, target, document, s.client.ID, nil)
	}
	var refusal *console.Error
	if errors.As(err, &refusal) {
		return &wire.Problem{Code: wire.CodeInvalid, Field: refusal.Field, Message: refusal.Message}
	}
	return err
}
