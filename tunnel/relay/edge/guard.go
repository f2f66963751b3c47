package edge

import (
	"context"
	"io"
	"net/http"
	"net/netip"
	"time"

	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/pages"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/edge/webhook"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/shape"
)

// shadowed precedes the rule in the access event of a visitor whom a policy in shadow mode
// would have refused.
const shadowed = "shadow:"

// guard calls next if the endpoint's policy admits a request. Otherwise it answers the request
// and returns the rule that refused it. next must stop when its context ends.
func (h *handler) guard(w *exchange.Writer, r *http.Request, to *exchange.Route, next func(context.Context, *http.Request)) (refused string) {
	ep, client := to.Endpoint, to.Visit.Visitor.Addr()
	ctx, v := ep.Enter(r.Context(), w)
	w.Visit = v
	defer ep.Leave(v)
	if ep.Meter.Stopped() {
		h.edge.refusePolicy(w, r, policy.RuleQuota)
		return policy.RuleQuota
	}
	guest, d := policy.Guest{Addr: client, Target: to.Target}, policy.Decision{Allowed: true}
	p := h.edge.cfg.Policy(ep.Target)
	door := h.doorOf(p, r, to)
	var hook *webhook.Webhook
	if p != nil {
		q := policy.Request{Addr: client, HTTP: true, BodySize: r.ContentLength, Target: to.Target}
		door.ask(&q)
		if p.ClientAuthorities() != nil {
			q.Certificate, q.Unasked = h.edge.presented(r, to.Visit.Authority, to.Way.Peer)
		}
		if p.AsksPassword() {
			q.User, q.Password, q.HasUser = r.BasicAuth()
		}
		var release func()
		d, release = p.Enter(q, time.Now())
		defer release()
		if d.Hook != nil {
			site := to.Way.Site()
			asked := webhook.Asked{Request: r, Scheme: site.Scheme, Host: site.Host, Target: to.Target, From: client}
			if hook, d = webhook.Read(p, d.Hook, asked, ep.Held()); d.Allowed {
				defer hook.Close()
				r, d = hook.Decide(ctx, r, h.coming(w, &ep.Meter))
			}
			if !d.Allowed {
				h.edge.log.Debug("webhook", "host", r.Host, "rule", d.Rule, "reason", d.Detail)
			}
		}
		if !d.Allowed && p.ClientAuthorities() != nil {
			h.edge.log.Debug("client certificate", "host", r.Host, "rule", d.Rule, "reason", d.Detail)
		}
		if !d.Allowed && !p.Shadow() {
			if q.Certificate != nil && policy.AsksWho(d.Rule) { // it was not good enough, but the next one may be
				retire(w, r)
			}
			door.refuse(w, d, q.Identity)
			return d.Rule
		}
		if d.Allowed {
			guest = p.Guest(q, time.Now())
			if hook != nil {
				guest.Proof = hook.Print()
			}
		}
	}
	v.LetIn(guest)
	if now := h.edge.keeps(ep, p, guest); !now.Allowed {
		h.edge.refusePolicy(w, r, now.Rule)
		return now.Rule
	}
	if p == nil {
		next(ctx, r)
		return w.Refused
	}
	if guest.SigningIn {
		door.serve(w)
		return ""
	}
	if !p.Shadow() {
		h.takeNames(r, p, guest, to)
		if p.HasWebhooks() {
			message.TakePaths(r.Header)
		}
	}
	if limit := p.MaxBody(); limit > 0 && !p.Shadow() && r.Body != nil && r.Body != http.NoBody && !webhook.Kept(r) {
		r = r.WithContext(ctx) // the server's own request must not change
		r.Body = http.MaxBytesReader(w, r.Body, limit)
	}
	next(ctx, r)
	if w.Refused != "" {
		return w.Refused
	}
	if d = hook.Verdict(d); !d.Allowed {
		return shadowed + d.Rule
	}
	return ""
}

// coming describes how the body of a webhook arrives.
func (h *handler) coming(w *exchange.Writer, meter *shape.Meter) webhook.Coming {
	return webhook.Coming{
		Read: func(ctx context.Context, body io.Reader, b []byte) (int, error) {
			n, err := meter.In().Read(ctx, body, b)
			w.CountIn(n)
			return n, err
		},
		Control: http.NewResponseController(w.ResponseWriter), Within: h.edge.limits.WebhookTime, Linger: visitor.LingerTime,
		Last: w.CloseAfter,
	}
}

// basicChallenge asks for a password.
const basicChallenge = `Basic realm="site", charset="UTF-8"`

// refusePolicy answers a visitor whom a rule does not admit.
func (e *Edge) refusePolicy(w http.ResponseWriter, r *http.Request, rule string) {
	status := policy.Status(rule)
	switch rule {
	case policy.RuleBasicAuth:
		w.Header().Set("WWW-Authenticate", basicChallenge)
	case policy.RuleSignIn:
		if w.Header().Get("WWW-Authenticate") == "" {
			w.Header().Set("WWW-Authenticate", "Sign-In") // RFC 9110, section 15.5.2 requires one, and browsers show no dialog for this scheme
		}
	case policy.RuleCertificate, policy.RuleCertificateIssuer, policy.RuleCertificateTime, policy.RuleCertificateWho, policy.RuleCertificateUnasked:
		retire(w, r)
	case policy.RuleWebhook:
		w.Header().Set("WWW-Authenticate", "Webhook-Signature") // required, as above
	case policy.RuleWebhookBusy:
		w.Header().Set("Retry-After", "5")
	case policy.RuleRate, policy.RulePerAddress, policy.RuleConnections:
		w.Header().Set("Retry-After", "1")
	case policy.RuleHours, policy.RuleQuota:
		w.Header().Set("Retry-After", "600")
	case policy.RuleTries:
		w.Header().Set("Retry-After", "60")
	}
	e.pages.Answer(w, r, pages.Page{Status: status, Title: http.StatusText(status), Text: policy.Text(rule)})
}

// keeps decides whether a guest whom p admitted may stay. p may be nil, and may have been
// changed before Recheck could find the guest.
func (e *Edge) keeps(ep *routing.Endpoint, p *policy.Policy, g policy.Guest) policy.Decision {
	if ep.Meter.Stopped() {
		return policy.Decision{Rule: policy.RuleQuota}
	}
	if e.signedOut(g) {
		return policy.Decision{Rule: policy.RuleSignIn}
	}
	if now := e.cfg.Policy(ep.Target); now != nil && now != p && !now.Shadow() {
		return now.Keeps(g, time.Now())
	}
	return policy.Decision{Allowed: true}
}

// guardRaw reports whether a connection or flow is admitted. It also returns the rule that
// refuses it, or would in shadow mode, and a function to call at its end.
func (e *Edge) guardRaw(ep *routing.Endpoint, v *visitor.Conn) (refused string, in bool, release func()) {
	if v.Guest != nil && !ep.Invites(*v.Guest) { // the visitors have changed since
		return policy.RuleVisitors, false, func() {}
	}
	return e.guardAddr(ep, v.Addr.Addr())
}

// guardAddr is guardRaw for a visitor of whom only the address is known.
func (e *Edge) guardAddr(ep *routing.Endpoint, client netip.Addr) (refused string, in bool, release func()) {
	if ep.Meter.Stopped() {
		return policy.RuleQuota, false, func() {}
	}
	p := e.cfg.Policy(ep.Target)
	if p == nil {
		return "", true, func() {}
	}
	d, release := p.Enter(policy.Request{Addr: client}, time.Now())
	switch {
	case d.Allowed:
		return "", true, release
	case p.Shadow():
		return shadowed + d.Rule, true, release
	}
	return d.Rule, false, release
}

// Recheck applies the current policies to everything open on targets: it ends visits that are
// no longer allowed and updates bandwidths. It scans all endpoints, so callers should pass
// many targets at once rather than one by one.
func (e *Edge) Recheck(targets ...string) {
	meant := make(map[string]bool, len(targets))
	for _, target := range targets {
		meant[target] = true
	}
	for _, ep := range e.table.All() {
		if meant[ep.Target] {
			e.bind(ep)
		}
	}
	now := time.Now()
	for _, ep := range e.table.All() {
		if !meant[ep.Target] {
			continue
		}
		p := e.cfg.Policy(ep.Target)
		if p == nil || p.Shadow() {
			continue
		}
		if p.ClientAuthorities() != nil {
			for _, shown := range ep.Visits.Presented() {
				p.Keeps(policy.Guest{Target: "/", Certificate: shown}, now) // Keeps remembers the result
			}
		}
		ep.Visits.EndGuests(func(g policy.Guest) policy.Decision {
			if e.signedOut(g) {
				return policy.Decision{Rule: policy.RuleSignIn}
			}
			return p.Keeps(g, now)
		})
		ep.EndFlows(func(_ *routing.Backend, from netip.Addr) bool { return !p.Keeps(policy.Guest{Addr: from}, now).Allowed })
	}
}
