package agent

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"adit/tunnel/agent/control"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TunnelPolicy is a tunnel's policy as the relay holds it.
type TunnelPolicy struct {
	// Policy is the document, without passwords and secrets; {} admits everybody.
	Policy json.RawMessage `json:"policy"`
	// Editable reports whether the relay's operator lets this client set the policy.
	Editable  bool       `json:"editable"`
	SetBy     string     `json:"set_by"` // "operator", or this client's name; empty: there is none
	ChangedAt *time.Time `json:"changed_at"`
	// Providers are the names of the relay's identity providers with which visitors can sign in.
	Providers []string `json:"sign_in_providers,omitempty"`
	// Webhooks are the providers whose webhooks the relay can verify.
	Webhooks []string `json:"webhook_providers,omitempty"`
	// Certificates reports whether the relay can admit visitors by their certificates.
	Certificates bool `json:"client_certificates,omitempty"`
	// Declared reports whether the policy comes from adit.toml and must be changed there.
	Declared bool `json:"declared"`
	// Tag is the policy's ETag, which changes with every edit. Empty if the relay sends none.
	Tag string `json:"-"`
}

// Policy asks the relay for a tunnel's policy.
func (a *Agent) Policy(ctx context.Context, id string) (TunnelPolicy, error) {
	return a.askPolicy(ctx, id, func(ctx context.Context, c *control.Client) (wire.Policy, string, error) {
		return c.Policy(ctx, id)
	})
}

// SetPolicy sets a tunnel's policy, if the relay's operator lets this client do so. The If-Match
// and If-None-Match fields of expected say what it may replace (RFC 9110, section 13.1); without
// them it replaces whatever is there.
func (a *Agent) SetPolicy(ctx context.Context, id string, document json.RawMessage, expected http.Header) (TunnelPolicy, error) {
	if !a.turn.TryLock() {
		return TunnelPolicy{}, busy()
	}
	defer a.turn.Unlock()
	if a.declaresPolicy(id) {
		return TunnelPolicy{}, &refusal.Error{Code: refusal.CodeInvalidParameter, Message: "adit.toml sets who may visit this tunnel; change it there", Field: "id"}
	}
	p, err := a.askPolicy(ctx, id, func(ctx context.Context, c *control.Client) (wire.Policy, string, error) {
		return c.SetPolicy(ctx, id, document, expected)
	})
	if err == nil {
		a.keepPolicy(id, document, string(p.Policy) == "{}")
	}
	return p, err
}

// declaresPolicy reports whether the tunnel's policy is in adit.toml.
func (a *Agent) declaresPolicy(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tunnels[id]
	return t != nil && t.declared && len(t.spec.Policy) > 0
}

// keepPolicy updates the policy that a tunnel came with to the one that replaced it, or to none if
// everybody is admitted now, because the relay may lose its copy. If some of the new policy's
// secrets are not known here, the earlier policy stays.
func (a *Agent) keepPolicy(id string, document json.RawMessage, open bool) {
	a.mu.Lock()
	t := a.tunnels[id]
	var before json.RawMessage
	if t != nil {
		before = t.spec.Policy
	}
	a.mu.Unlock()
	if len(before) == 0 {
		return
	}
	var next json.RawMessage
	if !open {
		if next = definition.NextPolicy(before, document); next == nil {
			return
		}
	}
	a.mu.Lock()
	t.spec.Policy = next
	a.mu.Unlock()
	if err := a.saveTunnels(); err != nil {
		a.log.Error("tunnels not saved; it is tried again", "error", err)
	}
}

func (a *Agent) askPolicy(ctx context.Context, id string, ask func(context.Context, *control.Client) (wire.Policy, string, error)) (TunnelPolicy, error) {
	a.mu.Lock()
	t, cur := a.tunnels[id], a.cur
	a.mu.Unlock()
	switch {
	case t == nil:
		return TunnelPolicy{}, notFound(id)
	case cur == nil || !cur.Alive():
		return TunnelPolicy{}, a.noSession()
	}
	ctx, cancel := context.WithTimeout(ctx, relayWait)
	defer cancel()
	p, tag, err := ask(ctx, cur.Control)
	if err != nil {
		return TunnelPolicy{}, control.Refusal(err, "")
	}
	declared := a.declaresPolicy(id)
	v := TunnelPolicy{Policy: p.Document, Editable: p.Editable && !declared, Declared: declared, SetBy: p.SetBy, Providers: p.Providers, Webhooks: p.Webhooks, Certificates: p.Certificates, Tag: tag}
	if !p.Changed.IsZero() {
		changed := p.Changed.UTC()
		v.ChangedAt = &changed
	}
	if len(v.Policy) == 0 {
		v.Policy = json.RawMessage("{}")
	}
	return v, nil
}
