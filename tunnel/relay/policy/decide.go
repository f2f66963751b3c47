package policy

import (
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/netblock"
	"adit/tunnel/relay/shape"
	"adit/tunnel/relay/signature"
)

// Geo looks up the country of an address, and its region if the database has it. Known is
// false if the address is unknown.
type Geo interface {
	Country(netip.Addr) (country, region string, known bool)
}

// Request is what a policy decides on.
type Request struct {
	Addr netip.Addr
	// HTTP is set for a request that can be asked for a password. Otherwise it is a
	// connection or flow.
	HTTP     bool
	BodySize int64 // as announced; negative if unknown
	User     string
	Password string
	HasUser  bool
	// Identity is who has signed in, or nil.
	Identity *Identity
	// SigningIn is set for a request that is part of signing in. It is not asked who it
	// is.
	SigningIn bool
	// Certificate is what the visitor has presented for the site, or nil.
	Certificate *Presented
	// Unasked is set if the request's connection was not asked for a certificate, but a
	// new connection may be.
	Unasked bool
	// Target is what the request asks for, exactly as its origin will receive it.
	Target string
	// Signed is set for a webhook with a valid signature. Only Explain trusts it.
	Signed bool
}

// Decision is a policy's answer.
type Decision struct {
	Allowed bool
	Rule    string // the rule that refused; "" if allowed
	Detail  string // for the operator, not for the visitor
	// Hook is set if the request may be let in only with a valid signature, which the
	// caller has to verify.
	Hook *Hook
}

// Step is a rule and its result, for an explanation.
type Step struct {
	Rule    string `json:"rule"`
	Refuses bool   `json:"refuses"`
	Detail  string `json:"detail"`
}

// Policy is a document with its state, ready to decide.
type Policy struct {
	doc         Document
	geo         func() Geo
	deny, allow blocks
	users       *passwords // nil: nobody is asked for a password
	hours       *plan      // nil: always open
	gate        *gate      // nil: no certificate lets in
	hooks       hooks
	*state
}

// state is what a policy counts. A document that replaces another takes over its state,
// so that what is open stays counted.
type state struct {
	in, out shape.Bucket

	mu     sync.Mutex
	open   map[netip.Prefix]int
	all    int
	rates  map[netip.Prefix]*bucket
	failed map[netip.Prefix]*bucket
}

// New returns the policy of a checked document. geo returns the current database, or nil
// if there is none; geo itself may be nil.
func New(d Document, geo func() Geo) *Policy {
	return Renew(nil, "", d, geo)
}

// Renew returns the policy that replaces old, which may be nil. It continues with what
// old has counted, and d's bandwidth takes effect immediately for what is already open.
// Policies of one owner, a client, take turns at trying passwords.
func Renew(old *Policy, owner string, d Document, geo func() Geo) *Policy {
	p := &Policy{doc: d, geo: geo, hours: d.Hours.plan(), deny: blocksOf(d.Deny), allow: blocksOf(d.Allow), gate: d.ClientCertificates.gate(), hooks: hooksOf(d.Webhooks)}
	if old != nil {
		p.state = old.state
	} else {
		p.state = &state{
			open: make(map[netip.Prefix]int), rates: make(map[netip.Prefix]*bucket), failed: make(map[netip.Prefix]*bucket),
		}
	}
	rate := d.Bandwidth
	if d.Shadow {
		rate = 0
	}
	p.in.SetRate(rate)
	p.out.SetRate(rate)
	if len(d.BasicAuth) > 0 {
		p.users = newPasswords(owner, d.BasicAuth)
	}
	return p
}

// End lifts the bandwidth limit from what is open, when the policy is deleted.
func (p *Policy) End() {
	p.in.SetRate(0)
	p.out.SetRate(0)
}

// Bandwidth returns the buckets that limit the target's bytes in and out.
func (p *Policy) Bandwidth() (in, out *shape.Bucket) { return &p.in, &p.out }

// Timed reports whether the policy's decisions change over time.
func (p *Policy) Timed() bool {
	return (p.hours != nil || p.doc.SignIn != nil || p.gate != nil) && !p.doc.Shadow
}

// Fenced reports whether the policy uses the geo database.
func (p *Policy) Fenced() bool { return len(p.doc.DenyCountries)+len(p.doc.AllowCountries) > 0 }

// Document returns the document that the policy was made from.
func (p *Policy) Document() Document { return p.doc }

// Shadow reports whether the policy only records.
func (p *Policy) Shadow() bool { return p.doc.Shadow }

// MaxBody returns the size of the largest allowed body, or 0 for no limit.
func (p *Policy) MaxBody() int64 { return p.doc.MaxBody }

// AsksPassword reports whether visitors may identify themselves with a password.
func (p *Policy) AsksPassword() bool { return p.users != nil }

// SignIn returns how visitors sign in with a provider, or nil if they do not.
func (p *Policy) SignIn() *SignIn { return p.doc.SignIn }

// Guest is a visitor that was let in.
type Guest struct {
	Addr     netip.Addr
	User     User      // whose password was right; zero: no password was asked for
	Identity *Identity // that was let in; nil if nobody has signed in
	// Certificate let the visitor in, or would have; it may be nil.
	Certificate *Presented
	// SigningIn is set for a visitor that is only about to identify itself.
	SigningIn bool
	Target    string          // of the request; empty for a connection or flow
	Proof     signature.Print // of the secret that signed; zero if none did
	// Reading makes it cheap to decide again on a guest that stays; it may be nil.
	Reading *Reading
}

// Reading remembers which webhooks a target is for, according to the policy that was
// asked last. A stranger can choose a path that takes half a millisecond to analyse, and
// everything that is open is checked against its policy once a second.
type Reading struct{ last atomic.Pointer[reading] }

type reading struct {
	by       *Policy
	hook     *Hook
	decision Decision
}

// hookFor is like hook, for a guest.
func (p *Policy) hookFor(g Guest) (*Hook, Decision) {
	if g.Reading == nil {
		return p.hook(g.Target != "", g.Target)
	}
	r := g.Reading.last.Load()
	if r == nil || r.by != p {
		r = &reading{by: p}
		r.hook, r.decision = p.hook(g.Target != "", g.Target)
		g.Reading.last.Store(r)
	}
	return r.hook, r.decision
}

// Name returns the name by which the visitor is known: that of its password, its identity
// or its certificate. It is empty if none was asked for.
func (g Guest) Name() string {
	switch {
	case g.Identity != nil:
		return g.Identity.Label()
	case g.Certificate != nil:
		return g.Certificate.Label()
	}
	return g.User.Name
}

// Guest returns the visitor of a request that the policy has allowed.
func (p *Policy) Guest(r Request, now time.Time) Guest {
	g := Guest{Addr: r.Addr, SigningIn: r.SigningIn, Target: r.Target}
	if h, _ := p.hook(r.HTTP, r.Target); h != nil { // a password in the request was not tried
		g.SigningIn = false
		return g
	}
	if p.presents(r, now).Allowed {
		g.Certificate = r.Certificate
	}
	if p.doc.SignIn.admits(r.Identity) {
		g.Identity = r.Identity
	} else if p.users != nil && g.Certificate == nil {
		g.User = User{Name: r.User, Hash: p.users.users[r.User]}
	}
	return g
}

// Keeps decides whether a guest, perhaps let in by an earlier policy, may stay. It checks
// address, hour, signature and password. Limits apply only to new visitors.
func (p *Policy) Keeps(g Guest, now time.Time) Decision {
	if d := p.standing(g.Addr, now); !d.Allowed {
		return d
	}
	switch h, d := p.hookFor(g); {
	case !d.Allowed:
		return Decision{Rule: d.Rule, Detail: d.Detail}
	case h != nil && h.knows(g.Proof):
		return Decision{Allowed: true}
	case h != nil:
		return Decision{Rule: RuleWebhook}
	}
	proved := p.users != nil && g.User.Hash != "" && p.users.users[g.User.Name] == g.User.Hash
	switch {
	case !p.asksWho(), proved, g.SigningIn && p.doc.SignIn != nil, p.gate != nil && p.gate.decide(g.Certificate, now).Allowed:
		return Decision{Allowed: true}
	case p.doc.SignIn != nil:
		return p.doc.SignIn.decide(g.Identity, now)
	case p.users != nil:
		return Decision{Rule: RuleBasicAuth}
	}
	return p.gate.decide(g.Certificate, now)
}

// standing decides by the visitor's address and the hour.
func (p *Policy) standing(addr netip.Addr, now time.Time) Decision {
	steps := p.standingSteps(addr, now, true)
	if n := len(steps); n > 0 && steps[n-1].Refuses {
		return Decision{Rule: steps[n-1].Rule, Detail: steps[n-1].Detail}
	}
	return Decision{Allowed: true}
}

// standingSteps tries the rules for address and hour in order. If first is set, it stops
// at the first rule that refuses.
func (p *Policy) standingSteps(addr netip.Addr, now time.Time, first bool) []Step {
	steps := p.addressSteps(addr, first)
	if n := len(steps); p.hours == nil || first && n > 0 && steps[n-1].Refuses {
		return steps
	}
	open := p.hours.open(now)
	if first && open {
		return steps
	}
	local, state := now.In(p.hours.zone).Format("Mon 15:04 MST"), "closed"
	if open {
		state = "open"
	}
	return append(steps, Step{RuleHours, !open, "it is " + local + ": " + state})
}

// addressSteps tries the rules for the address in order. If first is set, it stops at the
// first rule that refuses.
func (p *Policy) addressSteps(addr netip.Addr, first bool) []Step {
	addr = addr.Unmap().WithZone("")
	var steps []Step
	add := func(rule string, refuses bool, format string, args ...any) bool {
		if !refuses && first {
			return false // nobody needs it
		}
		steps = append(steps, Step{rule, refuses, fmt.Sprintf(format, args...)})
		return refuses && first
	}
	if listed := len(p.doc.Deny); listed > 0 {
		if m, ok := p.deny.match(addr); ok {
			if add(RuleDeny, true, "%s is in %s", addr, m) {
				return steps
			}
		} else if add(RuleDeny, false, "%s is not among the %d listed", addr, listed) {
			return steps
		}
	}
	if listed := len(p.doc.Allow); listed > 0 {
		if m, ok := p.allow.match(addr); !ok {
			if add(RuleAllow, true, "%s is not among the %d listed", addr, listed) {
				return steps
			}
		} else if add(RuleAllow, false, "%s is in %s", addr, m) {
			return steps
		}
	}
	if !p.Fenced() {
		return steps
	}
	var g Geo
	if p.geo != nil {
		g = p.geo()
	}
	if g == nil {
		add(RuleUnknownCountry, p.doc.UnknownCountry != "allow", "the relay has no geo database")
		return steps
	}
	c, region, known := g.Country(addr)
	if !known {
		add(RuleUnknownCountry, p.doc.UnknownCountry != "allow", "the database does not know %s", addr)
		return steps
	}
	place := c
	if region != "" {
		place += "-" + region
	}
	if len(p.doc.DenyCountries) > 0 {
		if m, ok := matchCountry(p.doc.DenyCountries, c, place); ok {
			if add(RuleDenyCountry, true, "%s is in %s", addr, m) {
				return steps
			}
		} else if add(RuleDenyCountry, false, "%s is in %s", addr, place) {
			return steps
		}
	}
	if len(p.doc.AllowCountries) > 0 {
		_, ok := matchCountry(p.doc.AllowCountries, c, place)
		add(RuleAllowCountry, !ok, "%s is in %s", addr, place)
	}
	return steps
}

func matchCountry(list []string, country, place string) (string, bool) {
	for _, c := range list {
		if c == country || c == place {
			return c, true
		}
	}
	return "", false
}

// Explain returns what each rule makes of a request, in the order in which the rules
// decide, without counting the request. Rules that depend on what is open or on earlier
// requests are evaluated as they stand now.
func (p *Policy) Explain(r Request, now time.Time) (Decision, []Step) {
	steps := p.standingSteps(r.Addr, now, false)
	if steps == nil {
		steps = []Step{}
	}
	who := netblock.Of(r.Addr)
	p.mu.Lock()
	all, own := p.all, p.open[who]
	tokens := p.tokens(p.rates, who, p.doc.Rate, p.burst(), now)
	tries := p.tokens(p.failed, who, triesRate, triesBurst, now)
	p.mu.Unlock()
	if limit := p.doc.Connections; limit > 0 {
		steps = append(steps, Step{RuleConnections, all >= limit, fmt.Sprintf("%d of %d are open", all, limit)})
	}
	if limit := p.doc.ConnectionsPerAddress; limit > 0 {
		steps = append(steps, Step{RulePerAddress, own >= limit, fmt.Sprintf("%d of %d are open", own, limit)})
	}
	if p.doc.Rate > 0 {
		steps = append(steps, Step{RuleRate, tokens < 1, fmt.Sprintf("%g a second, %d at once; %d may come now", p.doc.Rate, int(p.burst()), int(tokens))})
	}
	if limit := p.doc.MaxBody; limit > 0 && r.HTTP {
		steps = append(steps, Step{RuleMaxBody, r.BodySize > limit, fmt.Sprintf("at most %d bytes", limit)})
	}
	hooked, only := p.hookSteps(r)
	if steps = append(steps, hooked...); !only {
		steps = append(steps, p.nameSteps(r, tries, now)...)
	}
	for _, s := range steps {
		if s.Refuses {
			return Decision{Rule: s.Rule, Detail: s.Detail}, steps
		}
	}
	return Decision{Allowed: true}, steps
}

// Enter decides on a request and counts it. If the request is allowed, release must be
// called when it is over. If the decision has a Hook, the caller must verify the
// signature; in shadow mode, it lets the request in regardless.
func (p *Policy) Enter(r Request, now time.Time) (d Decision, release func()) {
	release = func() {}
	if d := p.standing(r.Addr, now); !d.Allowed {
		return d, release
	}
	who, password := netblock.Of(r.Addr), passwordNotAsked
	hook, unclear := p.hook(r.HTTP, r.Target)
	if hook == nil {
		password = p.asks(r, now)
	}
	p.mu.Lock()
	switch {
	case p.doc.Connections > 0 && p.all >= p.doc.Connections:
		d.Rule = RuleConnections
	case p.doc.ConnectionsPerAddress > 0 && p.open[who] >= p.doc.ConnectionsPerAddress:
		d.Rule = RulePerAddress
	case p.doc.Rate > 0 && !p.spend(p.rates, who, p.doc.Rate, p.burst(), now):
		d.Rule = RuleRate
	case p.doc.MaxBody > 0 && r.HTTP && r.BodySize > p.doc.MaxBody:
		d.Rule = RuleMaxBody
	case !unclear.Allowed:
		d = unclear
	case password == passwordMissing:
		d = p.unnamed(r, now)
	case password == passwordAsked && p.tokens(p.failed, who, triesRate, triesBurst, now) < 1:
		d.Rule = RuleTries
	}
	if d.Rule != "" {
		p.mu.Unlock()
		return d, release
	}
	p.open[who]++
	p.all++
	p.mu.Unlock()
	var once sync.Once
	release = func() {
		once.Do(func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.all--
			if p.open[who]--; p.open[who] <= 0 {
				delete(p.open, who)
			}
		})
	}
	if password == passwordAsked {
		switch p.users.check(who, r.User, r.Password, func() (func(), bool) { return p.try(who, now) }) {
		case wrongPassword:
			release()
			return Decision{Rule: RuleBasicAuth, Detail: "wrong user or password"}, func() {}
		case notTried:
			release()
			return Decision{Rule: RuleTries}, func() {}
		case crowded:
			release()
			return Decision{Rule: RuleConnections, Detail: "too many passwords wait to be checked"}, func() {}
		}
	}
	return Decision{Allowed: true, Hook: hook}, release
}
