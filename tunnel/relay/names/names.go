// Package names says what domain names mean at a relay: which are its own, which are
// clients', which a wildcard leads, and what people write for them and for other
// targets. Who may have which name is decided above it.
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

// Claims is what the store has of claims.
type Claims interface {
	Get(target string) (claims.Claim, bool)
}

// Rules are the names of one relay.
type Rules struct {
	Domain string   // that clients' names are under
	Own    []string // that the relay itself is reached by, Domain among them
	SignIn string   // that visitors sign in at; empty: at none of its own
	Claims Claims
	// Policed reports whether a target has a policy.
	Policed func(target string) bool
}

// Claimed reports whether a domain, or a wildcard, is a client's.
func (r Rules) Claimed(domain string) bool {
	_, ok := r.Claims.Get(claims.TargetDomain(domain))
	return ok
}

// Alone reports whether a name is not led by the wildcard that it is one of: it is a
// client's by itself, whether that is connected or not, or the relay's own. So is
// one that has a policy: whoever set it would not have it passed by.
func (r Rules) Alone(domain string) bool {
	return r.Claimed(domain) || r.Policed(claims.TargetDomain(domain)) || r.own(domain)
}

// own reports whether a name is one that the relay is reached by.
func (r Rules) own(domain string) bool { return slices.Contains(r.Own, domain) }

// Leader is the wildcard of a client that leads a name; empty: none does.
func (r Rules) Leader(domain string) string {
	if all := wildcard.Of(domain); all != "" && r.Claimed(all) && !r.Alone(domain) {
		return all
	}
	return ""
}

// Subject is what a name's certificate is for: the name, or the wildcard that leads
// it. Empty: it may have none, as it is nobody's.
func (r Rules) Subject(domain string) string {
	if domain != "" && domain == r.SignIn || r.Claimed(domain) {
		return domain
	}
	return r.Leader(domain)
}

// Under reports whether a name is under the relay's domain.
func (r Rules) Under(name string) bool { return strings.HasSuffix(name, "."+r.Domain) }

// spelledOut is a name, or a wildcard, with the relay's domain where it is one label
// under that, and the name that a wildcard is under, or the same name.
func (r Rules) spelledOut(name string) (full, base string) {
	if base, _ = wildcard.Base(name); !strings.Contains(base, ".") && base != r.Domain {
		return name + "." + r.Domain, base + "." + r.Domain
	}
	return name, base
}

// Full is the name that a claim's domain means. Its errors are *wire.Problem.
func (r Rules) Full(domain string) (string, error) {
	domain, base := r.spelledOut(domain)
	all := base != domain
	switch {
	case !Valid(base):
		return "", wire.Invalid("domain", "%q is not a domain name; names of other scripts are written in their xn-- form", domain)
	case all && base == r.Domain:
		return "", wire.Forbidden("domain", "%s would take the names of all clients; choose a name below it, such as *.shop.%s", domain, r.Domain)
	case !all && r.own(domain):
		return "", wire.Forbidden("domain", "%s is the relay's own name; choose another", domain)
	}
	return domain, nil
}

// Target reads what the operator calls a target: a domain or its one label, a
// wildcard as *.shop, tcp.PORT or udp.PORT, or a private tunnel as CLIENT/NAME.
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

// Shown is a target as the operator writes it: what Target reads.
func Shown(target string) string {
	if name := claims.DomainOf(target); name != "" {
		return name
	}
	if client, name, ok := claims.PrivateOf(target); ok {
		return client + "/" + name
	}
	return target
}
