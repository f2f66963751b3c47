package policy

import (
	"cmp"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"adit/internal/netblock"
)

// SignIn lets in whoever has signed in with an identity provider and is on one of its
// lists.
type SignIn struct {
	// Provider is a provider's name in the relay's configuration.
	Provider string `json:"provider"`
	// Emails contains addresses, such as "ann@example.com", and whole domains, such as
	// "@example.com". Case does not matter.
	Emails []string `json:"emails,omitempty"`
	// Groups contains names of groups, as the provider writes them.
	Groups []string `json:"groups,omitempty"`
	// Anyone lets in everybody whom the provider knows.
	Anyone bool `json:"anyone,omitempty"`
}

// Identity is who a visitor is, according to a provider.
type Identity struct {
	Provider string
	Subject  string    // the provider's own name for the person
	Email    string    // normalised by LowerEmail; empty: none that the provider vouches for
	Emails   []string  // further ones, at least those that the policy named when the visitor signed in
	Name     string    // for display; it may belong to somebody else tomorrow. Empty: none
	Groups   []string  // at least those that the policy asked for when the visitor signed in
	Since    time.Time // time of the sign-in
	Mark     Mark      // the same, independent of clocks
	Until    time.Time
}

// Mark is a position in the order in which the relay's store has recorded the ends of
// sign-ins.
type Mark struct {
	Store  int64  // identifies the store; zero: there is no mark
	Number uint64 // of the last end before it
}

// Label returns the name by which logs and people know the person: the address, or else
// the name, or else the provider's own name.
func (i Identity) Label() string { return cmp.Or(i.Email, i.Name, i.Subject) }

// maxWho limits each list of those who are let in.
const maxWho = 1000

var (
	providerName = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`)
	emailRule    = regexp.MustCompile(`^[^@\s]{0,64}@[^@\s]{1,253}$`)
)

// ValidProviderName reports whether a provider may have this name.
func ValidProviderName(name string) bool { return providerName.MatchString(name) }

// check returns the first fault, and normalises addresses for comparison.
func (s *SignIn) check() error {
	switch {
	case s == nil:
		return nil
	case !ValidProviderName(s.Provider):
		return &FieldError{"sign_in.provider", "must be the name of a provider in the relay's configuration"}
	case len(s.Emails) > maxWho:
		return &FieldError{"sign_in.emails", fmt.Sprintf("has more than %d rules", maxWho)}
	case len(s.Groups) > maxWho:
		return &FieldError{"sign_in.groups", fmt.Sprintf("has more than %d rules", maxWho)}
	case s.Anyone && len(s.Emails)+len(s.Groups) > 0:
		return &FieldError{"sign_in.anyone", "lets in everybody whom the provider knows; leave out emails and groups, or anyone"}
	case !s.Anyone && len(s.Emails)+len(s.Groups) == 0:
		return &FieldError{"sign_in.emails", "set emails or groups to choose who is let in, or anyone to let in everybody whom the provider knows"}
	}
	for i, e := range s.Emails {
		s.Emails[i] = LowerEmail(strings.TrimSpace(e))
		if !emailRule.MatchString(s.Emails[i]) {
			return &FieldError{fmt.Sprintf("sign_in.emails[%d]", i), fmt.Sprintf("%q is neither an address such as ann@example.com nor a whole domain such as @example.com", e)}
		}
	}
	for i, g := range s.Groups {
		if g == "" || len(g) > 256 {
			return &FieldError{fmt.Sprintf("sign_in.groups[%d]", i), "must have 1 to 256 bytes"}
		}
	}
	return nil
}

// Wanted returns those of groups that the policy lets in.
func (s *SignIn) Wanted(groups []string) []string {
	var wanted []string
	for _, g := range groups {
		if slices.Contains(s.Groups, g) {
			wanted = append(wanted, g)
		}
	}
	return wanted
}

// WantedEmails returns those of emails that the policy lets in.
func (s *SignIn) WantedEmails(emails []string) []string {
	var wanted []string
	for _, e := range emails {
		if s.names(e) {
			wanted = append(wanted, e)
		}
	}
	return wanted
}

// LowerEmail normalises an address for comparison. A letter outside ASCII never becomes
// an ASCII letter: a domain with İ differs from one with i, and may belong to somebody
// else.
func LowerEmail(email string) string {
	return strings.Map(func(r rune) rune {
		if lower := unicode.ToLower(r); r < utf8.RuneSelf || lower >= utf8.RuneSelf {
			return lower
		}
		return r
	}, email)
}

// names reports whether an address, normalised by LowerEmail, is let in.
func (s *SignIn) names(email string) bool {
	at := strings.LastIndexByte(email, '@')
	return at > 0 && (slices.Contains(s.Emails, email) || slices.Contains(s.Emails, email[at:]))
}

// admits reports whether somebody has signed in and is among those let in. It does not
// check whether the sign-in is still valid.
func (s *SignIn) admits(who *Identity) bool {
	if s == nil || who == nil || who.Provider != s.Provider {
		return false
	}
	return s.Anyone || len(s.Wanted(who.Groups)) > 0 || s.names(who.Email) || slices.ContainsFunc(who.Emails, s.names)
}

// decide decides on the person who has signed in, or on nobody if who is nil.
func (s *SignIn) decide(who *Identity, now time.Time) Decision {
	switch {
	case who == nil || who.Provider != s.Provider || !now.Before(who.Until):
		return Decision{Rule: RuleSignIn}
	case !s.admits(who):
		return Decision{Rule: RuleSignInWho, Detail: who.Label() + " is not among those let in"}
	}
	return Decision{Allowed: true}
}

// credential says what a request's password means to a policy.
type credential int

const (
	passwordNotAsked credential = iota // nobody asks, or the visitor is let in by other means
	passwordAsked                      // it has to be tried
	passwordMissing                    // and nothing takes its place
)

// asksWho reports whether visitors have to identify themselves, by any means.
func (p *Policy) asksWho() bool { return p.users != nil || p.doc.SignIn != nil || p.gate != nil }

// asks says whether a request's password is to be tried.
func (p *Policy) asks(r Request, now time.Time) credential {
	s := p.doc.SignIn
	switch {
	case !p.asksWho(), s != nil && r.HTTP && (r.SigningIn || s.decide(r.Identity, now).Allowed), p.presents(r, now).Allowed:
		return passwordNotAsked
	case p.users != nil && r.HTTP && r.HasUser:
		return passwordAsked
	}
	return passwordMissing
}

// unnamed refuses a request that neither a password nor an identity nor a certificate
// lets in. If a new connection may present a certificate, that is tried before the
// visitor is asked for anything else.
func (p *Policy) unnamed(r Request, now time.Time) Decision {
	switch {
	case p.asksCertificate(r) && r.Unasked:
		return p.presents(r, now)
	case p.doc.SignIn != nil:
		return p.doc.SignIn.decide(r.Identity, now)
	case p.users != nil:
		return Decision{Rule: RuleBasicAuth}
	}
	return p.presents(r, now)
}

// nameSteps explains who is let in by password, identity or certificate. tries is how
// many passwords the address may try now.
func (p *Policy) nameSteps(r Request, tries float64, now time.Time) []Step {
	s := p.doc.SignIn
	if !p.asksWho() {
		return nil
	}
	if d := p.presents(r, now); p.gate != nil && (d.Allowed || p.users == nil && s == nil) {
		return []Step{{cmp.Or(d.Rule, RuleCertificate), !d.Allowed, d.Detail}}
	}
	if p.asks(r, now) == passwordNotAsked {
		return []Step{{RuleSignIn, false, r.Identity.Label() + " has signed in with " + s.Provider}}
	}
	step := Step{Rule: RuleBasicAuth, Refuses: true}
	switch {
	case !r.HTTP && s != nil:
		step = Step{RuleSignIn, true, "this type of tunnel cannot have visitors sign in"}
	case !r.HTTP:
		step.Detail = "this type of tunnel cannot ask for a password"
	case !r.HasUser && s != nil:
		d := p.unnamed(r, now)
		step = Step{d.Rule, true, d.Detail}
		if step.Detail == "" {
			step.Detail = "visitors sign in with " + s.Provider
		}
	case !r.HasUser:
		step.Detail = fmt.Sprintf("one of %d users is asked for", len(p.doc.BasicAuth))
	case p.users == nil:
		step = Step{RuleSignIn, true, "visitors sign in with " + s.Provider}
	case tries < 1:
		step = Step{RuleTries, true, "too many wrong passwords came from the address"}
	default:
		verdict := p.users.check(netblock.Of(r.Addr), r.User, r.Password, func() (func(), bool) { return func() {}, true })
		step.Refuses, step.Detail = verdict != rightPassword, "the password is checked"
	}
	if d := p.presents(r, now); p.gate != nil && step.Refuses { // the certificate would have been enough
		return []Step{step, {d.Rule, true, d.Detail}}
	}
	return []Step{step}
}

// Try takes one of an address's attempts to prove who it is, by password or by signing
// in. back returns the attempt.
func (p *Policy) Try(addr netip.Addr, now time.Time) (back func(), ok bool) {
	return p.try(netblock.Of(addr), now)
}
