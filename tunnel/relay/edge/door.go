package edge

import (
	"net/http"
	"time"

	"adit/tunnel/relay/edge/exchange"
	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/signin"
)

// door handles a request whose visitor may have to sign in.
type door struct {
	handler  *handler
	r        *http.Request
	to       *exchange.Route
	site     signin.Site // SignIn is nil if nobody signs in here
	password bool        // a password admits visitors, too
}

func (h *handler) doorOf(p *policy.Policy, r *http.Request, to *exchange.Route) door {
	d := door{handler: h, r: r, to: to, password: p != nil && p.AsksPassword()}
	if p == nil || p.SignIn() == nil || p.Shadow() || h.edge.cfg.SignIn == nil {
		return d
	}
	d.site = signin.Site{
		Scheme: to.Way.Scheme(), Host: r.Host, Name: to.Visit.Authority, SignIn: p.SignIn(),
		Try: func() (func(), bool) { return p.Try(to.Visit.Visitor.Addr(), time.Now()) },
	}
	return d
}

// ask tells a policy who has signed in, and who is about to.
func (d door) ask(q *policy.Request) {
	if d.site.SignIn != nil {
		q.Identity, q.SigningIn = d.handler.edge.cfg.SignIn.Identity(d.r, d.site), signin.Owns(d.r.URL.Path)
	}
}

// signedOut reports whether the operator has ended a guest's sign-in.
func (e *Edge) signedOut(g policy.Guest) bool {
	return e.cfg.SignIn != nil && g.Identity != nil && e.cfg.SignIn.Ended(g.Identity)
}

// refuse answers a visitor who is not let in. A browser that opens a page is instead sent to
// sign in or, if it has signed in already, told as whom. A program is asked for a password if
// one would let it in: many send theirs only when asked.
func (d door) refuse(w http.ResponseWriter, decision policy.Decision, who *policy.Identity) {
	switch opens := d.site.SignIn != nil && signin.Navigates(d.r); {
	case opens && decision.Rule == policy.RuleSignIn:
		d.handler.edge.cfg.SignIn.Begin(w, d.r, d.site, d.to.Target, d.handler.edge.pages.AnswerText)
	case opens && decision.Rule == policy.RuleSignInWho:
		signin.RefuseWho(w, d.r, who)
	case decision.Rule == policy.RuleSignIn && d.password && !signin.FromPage(d.r):
		w.Header().Set("WWW-Authenticate", basicChallenge)
		fallthrough
	default:
		d.handler.edge.refusePolicy(w, d.r, decision.Rule)
	}
}

// serve answers a request that is part of signing in.
func (d door) serve(w http.ResponseWriter) {
	d.handler.edge.cfg.SignIn.Serve(w, d.r, d.site, d.handler.edge.pages.AnswerText)
}

// takeNames removes from a request what was meant for the edge, and arranges for the origin to
// be told who the visitor is.
func (h *handler) takeNames(r *http.Request, p *policy.Policy, guest policy.Guest, to *exchange.Route) {
	if !p.AsksPassword() && p.SignIn() == nil && p.ClientAuthorities() == nil {
		return
	}
	if guest.User.Name != "" {
		r.Header.Del("Authorization")
	}
	for _, name := range message.WhoHeaders { // those that a load balancer added
		r.Header.Del(name)
	}
	to.Way.Who = guest
}

// takeCookies removes the relay's own cookies from a request that goes on to an origin.
// Browsers keep them longer than the policy that asked for the sign-in lasts.
func (e *Edge) takeCookies(r *http.Request) {
	if e.cfg.SignIn != nil {
		signin.Strip(r.Header)
	}
}
