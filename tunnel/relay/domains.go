package relay

import (
	"slices"
	"strings"

	"adit/internal/wildcard"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// claimed reports whether a domain, or a wildcard, is a client's.
func (r *Relay) claimed(domain string) bool {
	_, ok := r.store.Claims.Get(store.TargetDomain(domain))
	return ok
}

// alone reports whether a name is not led by the wildcard that it is one of: it is a
// client's by itself, whether that is connected or not, or the relay's own. So is
// one that has a policy: whoever set it would not have it passed by.
func (r *Relay) alone(domain string) bool {
	return r.claimed(domain) || r.policies.Get(store.TargetDomain(domain)) != nil || r.relaysOwn(domain)
}

// relaysOwn reports whether a name is one that the relay is reached by.
func (r *Relay) relaysOwn(domain string) bool {
	return slices.Contains([]string{r.cfg.Domain, r.cfg.PublicHost, r.cfg.SignInName()}, domain)
}

// leader is the wildcard of a client that leads a name; empty: none does.
func (r *Relay) leader(domain string) string {
	if all := wildcard.Of(domain); all != "" && r.claimed(all) && !r.alone(domain) {
		return all
	}
	return ""
}

// subject is what a name's certificate is for: the name, or the wildcard that leads
// it. Empty: it may have none, as it is nobody's.
func (r *Relay) subject(domain string) string {
	if domain != "" && domain == r.cfg.SignInName() || r.claimed(domain) {
		return domain
	}
	return r.leader(domain)
}

// ownName reports whether a name is under the relay's domain.
func (r *Relay) ownName(name string) bool { return strings.HasSuffix(name, "."+r.cfg.Domain) }

// spelledOut is a name, or a wildcard, with the relay's domain where it is one label
// under that, and the name that a wildcard is under, or the same name.
func (r *Relay) spelledOut(name string) (full, base string) {
	if base, _ = wildcard.Base(name); !strings.Contains(base, ".") && base != r.cfg.Domain {
		return name + "." + r.cfg.Domain, base + "." + r.cfg.Domain
	}
	return name, base
}

// fullName is the name that a claim's domain means.
func (r *Relay) fullName(domain string) (string, error) {
	domain, base := r.spelledOut(domain)
	all := base != domain
	switch {
	case !config.ValidName(base):
		return "", invalid("domain", "%q is not a domain name; names of other scripts are written in their xn-- form", domain)
	case all && base == r.cfg.Domain:
		return "", &wire.Problem{Code: wire.CodeForbidden, Field: "domain", Message: domain + " would be the names of all clients; choose a name below, as *.shop." + r.cfg.Domain}
	case !all && r.relaysOwn(domain):
		return "", &wire.Problem{Code: wire.CodeForbidden, Field: "domain", Message: domain + " is the relay's own name; choose another"}
	}
	return domain, nil
}

// certifiable reports why visitors of a tunnel could not be shown a certificate.
func (r *Relay) certifiable(tunnelType, name string) error {
	if tunnelType != wire.TypeHTTPS || !wildcard.Is(name) || r.acme == nil || r.acme.Wildcards() || r.file != nil && r.file.Covers(name) != nil {
		return nil
	}
	return forbidden("domain", "the relay gets no certificate for %s: authorities give those for dns-01 only, which it is not set up for; choose the type http or tls, or ask its operator", name)
}
