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

// TunnelPolicy says who is let in to a tunnel, as the relay holds it.
type TunnelPolicy struct {
	// Policy is the document, without passwords and secrets; {} lets everybody in.
	Policy json.RawMessage `json:"policy"`
	// Editable reports whether the relay's operator lets this client set it.
	Editable  bool       `json:"editable"`
	SetBy     string     `json:"set_by"` // "operator", or this client's name; empty: there is none
	ChangedAt *time.Time `json:"changed_at"`
	// Providers are the names of the relay's identity providers, which visitors can
	// sign in with.
	Providers []string `json:"sign_in_providers,omitempty"`
	// Webhooks are the providers whose webhooks the relay can verify.
	Webhooks []string `json:"webhook_providers,omitempty"`
	// Certificates reports whether the relay can let visitors in by theirs.
	Certificates bool `json:"client_certificates,omitempty"`
	// Declared reports whether adit.toml says who is let in: it is to be changed there.
	Declared bool `json:"declared"`
	// Tag is its ETag: another one with every change. Empty: the relay tells none.
	Tag string `json:"-"`
}

// Policy asks the relay who is let in to a tunnel.
func (a *Agent) Policy(ctx context.Context, id string) (TunnelPolicy, error) {
	return a.askPolicy(ctx, id, func(ctx context.Context, c *control.Client) (wire.Policy, string, error) {
		return c.Policy(ctx, id)
	})
}

// SetPolicy sets who is let in to a tunnel, where the relay's operator lets this
// client do so. What it may replace is in If-Match and If-None-Match of expected
// (RFC 9110, section 13.1); without them it replaces whatever is there.
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

// keepPolicy has a tunnel that brought a policy bring the one that replaced it, or none
// that everybody is let in by now: the relay may lose what it has. One of which not all
// secrets are known here leaves the first in its place.
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
	t, cur, configured := a.tunnels[id], a.cur, a.stateLocked() != StateUnconfigured
	a.mu.Unlock()
	switch {
	case t == nil:
		return TunnelPolicy{}, notFound(id)
	case !configured:
		return TunnelPolicy{}, notConfigured()
	case cur == nil || !cur.Alive():
		return TunnelPolicy{}, noSession()
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
