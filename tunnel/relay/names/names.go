// Package names defines what domain names mean at a relay: which are the relay's own,
// which belong to clients, which are covered by a wildcard, and how people write them and
// other targets. Who may have which name is decided by the packages above it.
package names

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"adit/internal/wildcard"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

var domainLabel = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Valid reports whether name is a DNS name in lower case.
func Valid(name string) bool {
	if name == "" || len(name) > 253 || !strings.ContainsFunc(name, func(r rune) bool { return r >= 'a' && r <= 'z' }) {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if !domainLabel.MatchString(label) {
			return false
		}
	}
	return true
}

// Claims provides the claims in the store.
type Claims interface {
	Get(target string) (claims.Claim, bool)
}

// Rules determines the meaning of names at one relay.
type Rules struct {
	Domain string   // the domain that clients' names are under
	Own    []string // names by which the relay itself is reached, including Domain
	SignIn string   // the name that visitors sign in at; empty: none
	// Console contains the names by which the operator's console is reached, in lower
	// case.
	Console []string
	Claims  Claims
	// Policed reports whether a target has a policy.
	Policed func(target string) bool
}

// Claimed reports whether a domain, or a wildcard, belongs to a client.
func (r Rules) Claimed(domain string) bool {
	_, ok := r.Claims.Get(claims.TargetDomain(domain))
	return ok
}

// Alone reports whether a name is not led by the wildcard that covers it. That is so if a
// client has claimed the name itself, connected or not, or if it is the console's or one
// of the relay's own. It is also so if the name has a policy: whoever set it would not
// want it to be bypassed.
func (r Rules) Alone(domain string) bool {
	return r.Claimed(domain) || r.Policed(claims.TargetDomain(domain)) || r.own(domain) || r.IsConsole(domain)
}

// IsConsole reports whether a name is the console's. A browser sends its cookies for a
// name to every port of that name.
func (r Rules) IsConsole(domain string) bool { return slices.Contains(r.Console, domain) }

// own reports whether the relay is reached by a name.
func (r Rules) own(domain string) bool { return slices.Contains(r.Own, domain) }

// Leader returns the wildcard of a client that leads a name, or "" if there is none.
func (r Rules) Leader(domain string) string {
	if all := wildcard.Of(domain); all != "" && r.Claimed(all) && !r.Alone(domain) {
		return all
	}
	return ""
}

// Subject returns what a name's certificate must be for: the name, or the wildcard that
// leads it. It is empty if the name may have no certificate because it belongs to nobody.
func (r Rules) Subject(domain string) string {
	if domain != "" && domain == r.SignIn || r.Claimed(domain) {
		return domain
	}
	return r.Leader(domain)
}

// Under reports whether a name is under the relay's domain.
func (r Rules) Under(name string) bool { return strings.HasSuffix(name, "."+r.Domain) }

// spelledOut returns a name or wildcard in full: a single label is put under the relay's
// domain. base is the name that a wildcard is under, or the same name.
func (r Rules) spelledOut(name string) (full, base string) {
	if base, _ = wildcard.Base(name); !strings.Contains(base, ".") && base != r.Domain {
		return name + "." + r.Domain, base + "." + r.Domain
	}
	return name, base
}

// Full returns the full name that a claim's domain stands for. Its errors are
// *wire.Problem.
func (r Rules) Full(domain string) (string, error) {
	domain, base := r.spelledOut(domain)
	all := base != domain
	switch {
	case !Valid(base):
		return "", wire.Invalid("domain", "%q is not a domain name; names of other scripts are written in their xn-- form", domain)
	case all && base == r.Domain:
		return "", wire.Forbidden("domain", "%s would take the names of all clients; choose a name below it, such as *.shop.%s", domain, r.Domain)
	case !all && r.own(domain):
		return "", OwnError(domain)
	}
	return domain, nil
}

// OwnError returns the error that refuses one of the relay's own names.
func OwnError(domain string) error {
	return wire.Forbidden("domain", "%s is the relay's own name; choose another", domain)
}

// Target parses the operator's name for a target: a domain or its single label, a
// wildcard such as *.shop, tcp.PORT or udp.PORT, or a private tunnel as CLIENT/NAME.
func (r Rules) Target(text string) (string, error) {
	text = strings.ToLower(strings.TrimSuffix(strings.TrimSpace(text), "."))
	if network, port, ok := claims.PortOf(text); ok {
		if port < 1 || port > 65535 {
			return "", errors.New("the port must be 1 to 65535")
		}
		return claims.TargetPort(network, port), nil
	}
	if strings.Contains(text, "/") {
		client, name, err := wire.ParsePrivate(text)
		if err != nil {
			return "", fmt.Errorf("%q is not a private tunnel, which is CLIENT/NAME", text)
		}
		return claims.TargetPrivate(client, name), nil
	}
	text, base := r.spelledOut(text)
	if !Valid(base) {
		return "", fmt.Errorf("%q is neither a domain nor tcp.PORT, udp.PORT or CLIENT/NAME", text)
	}
	return claims.TargetDomain(text), nil
}

// Shown returns a target as the operator writes it, in a form that Target parses.
func Shown(target string) string {
	if name := claims.DomainOf(target); name != "" {
		return name
	}
	if client, name, ok := claims.PrivateOf(target); ok {
		return client + "/" + name
	}
	return target
}
