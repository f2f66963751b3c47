package policy

import (
	"cmp"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ClientCertificates lets in visitors that present a certificate issued by one of its
// authorities (mutual TLS).
type ClientCertificates struct {
	// Authorities contains the authorities' certificates as PEM. A certificate that is
	// not an authority, and that issued itself, lets itself in.
	Authorities string `json:"authorities"`
	// Names limits who is let in by what the certificate is for: an e-mail address, or a
	// whole domain such as "@example.com"; a URI such as "spiffe://…"; a DNS name or the
	// subject's common name; or the certificate itself by its fingerprint, such as
	// "sha256:4f…". If empty, everybody with a certificate from the authorities is let
	// in.
	Names []string `json:"names,omitempty"`
}

// Limits on the authorities, and on what a visitor may present.
const (
	maxAuthorities   = 16
	maxAuthorityText = 64 << 10
	maxAuthorityKey  = 8192 // bits of RSA
	// MaxPresented and MaxPresentedBytes limit how many certificates a visitor may
	// present, and their total length.
	MaxPresented      = 10
	MaxPresentedBytes = 32 << 10
)

const fingerprintPrefix = "sha256:"

// check returns the first fault, and normalises authorities and names for storage.
func (c *ClientCertificates) check() error {
	if c == nil {
		return nil
	}
	list, err := parseAuthorities(c.Authorities)
	if err != nil {
		return &FieldError{"client_certificates.authorities", err.Error()}
	}
	var text strings.Builder
	for _, a := range list {
		_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: a.Raw}) // a Builder never fails
	}
	c.Authorities = text.String()
	if len(c.Names) > maxWho {
		return &FieldError{"client_certificates.names", fmt.Sprintf("has more than %d names", maxWho)}
	}
	for i, name := range c.Names {
		field := fmt.Sprintf("client_certificates.names[%d]", i)
		c.Names[i] = strings.TrimSpace(name)
		if len(c.Names[i]) == 0 || len(c.Names[i]) > 256 {
			return &FieldError{field, "must have 1 to 256 bytes"}
		}
		if c.Names[i], err = nameRule(c.Names[i]); err != nil {
			return &FieldError{field, err.Error()}
		}
	}
	return nil
}

// nameRule normalises a name for comparison.
func nameRule(name string) (string, error) {
	prefix, sum, _ := strings.Cut(name, ":")
	switch {
	case strings.EqualFold(prefix+":", fingerprintPrefix):
		sum = strings.ToLower(strings.ReplaceAll(sum, ":", ""))
		if b, err := hex.DecodeString(sum); err != nil || len(b) != sha256.Size {
			return "", fmt.Errorf("%q is not a fingerprint: write sha256: and 64 hexadecimal digits", name)
		}
		return fingerprintPrefix + sum, nil
	case strings.HasPrefix(name, "@") && !emailRule.MatchString(name):
		return "", fmt.Errorf("%q is not a whole domain such as @example.com", name)
	}
	return name, nil
}

// parseAuthorities parses PEM certificates and drops duplicates.
func parseAuthorities(text string) ([]*x509.Certificate, error) {
	if len(text) > maxAuthorityText {
		return nil, fmt.Errorf("has more than %d KiB", maxAuthorityText>>10)
	}
	list, err := parsePEM(text, maxAuthorities)
	if err != nil {
		return nil, err
	}
	for i, c := range list {
		key, isRSA := c.PublicKey.(*rsa.PublicKey)
		switch {
		case isRSA && key.N.BitLen() > maxAuthorityKey:
			return nil, fmt.Errorf("the certificate at place %d has a key of more than %d bits", i+1, maxAuthorityKey)
		case c.Version < 3:
			return nil, fmt.Errorf("the certificate at place %d is of an old version (v%d), which does not say whether it is an authority's", i+1, c.Version)
		case !c.IsCA && string(c.RawSubject) != string(c.RawIssuer):
			return nil, fmt.Errorf("the certificate at place %d is not an authority's: give the certificate that issued it, and add the fingerprint of this one to the names", i+1)
		}
	}
	return list, nil
}

// parsePEM parses at least one and at most most certificates, and drops duplicates.
func parsePEM(text string, most int) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		switch {
		case strings.Contains(block.Type, "PRIVATE KEY"):
			return nil, errors.New("contains a private key, which only its owner should have: give the certificates only")
		case block.Type != "CERTIFICATE":
			return nil, fmt.Errorf("has a %q in it where only certificates belong", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the certificate at place %d cannot be read: %w", len(list)+1, err)
		}
		if slices.ContainsFunc(list, c.Equal) {
			continue
		}
		if list = append(list, c); len(list) > most {
			return nil, fmt.Errorf("has more than %d certificates", most)
		}
	}
	if len(list) == 0 {
		return nil, errors.New("has no PEM certificate: text that begins with -----BEGIN CERTIFICATE-----")
	}
	return list, nil
}

// Noted returns the document for the audit log: like Redacted, but with the authorities
// replaced by their fingerprints and subjects. Their full text is so long that the entry
// might have no room for the rest.
func (d Document) Noted() Document {
	d = d.Redacted()
	if d.ClientCertificates == nil {
		return d
	}
	list, _ := parseAuthorities(d.ClientCertificates.Authorities) // already checked
	var noted []string
	for _, a := range list {
		noted = append(noted, fingerprintOf(a)+" "+subjectOf(a))
	}
	d.ClientCertificates = &ClientCertificates{Authorities: strings.Join(noted, "\n"), Names: d.ClientCertificates.Names}
	return d
}

// gate is a document's ClientCertificates, ready to decide. If its authorities cannot be
// parsed, it lets nobody in.
type gate struct {
	rules       [sha256.Size]byte // identifies the rules
	authorities *x509.CertPool
	all         bool            // everyone with a certificate from them is let in
	exact       map[string]bool // common names, URIs and fingerprints
	folded      map[string]bool // DNS names, addresses and their domains, in lower case
}

func (c *ClientCertificates) gate() *gate {
	if c == nil {
		return nil
	}
	g := &gate{rules: c.sum(), authorities: x509.NewCertPool(), all: len(c.Names) == 0, exact: make(map[string]bool), folded: make(map[string]bool)}
	list, _ := parseAuthorities(c.Authorities)
	for _, a := range list {
		g.authorities.AddCert(a)
	}
	for _, name := range c.Names {
		g.exact[name], g.folded[strings.ToLower(name)] = true, true
	}
	return g
}

// sum returns a hash that identifies the rules.
func (c *ClientCertificates) sum() [sha256.Size]byte {
	h := sha256.New()
	for _, text := range append([]string{c.Authorities}, c.Names...) {
		fmt.Fprintf(h, "%d:%s", len(text), text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// names reports whether a certificate belongs to someone who is let in. An authority may
// be constrained by another to some addresses or URIs, but not to common names. So a
// common name never counts as an address or a URI.
func (g *gate) names(c *x509.Certificate) bool {
	if g.all || g.exact[fingerprintOf(c)] {
		return true
	}
	if cn := c.Subject.CommonName; plainName(cn) && g.exact[cn] {
		return true
	}
	for _, e := range c.EmailAddresses {
		e = strings.ToLower(e)
		if at := strings.LastIndexByte(e, '@'); g.folded[e] || at > 0 && g.folded[e[at:]] {
			return true
		}
	}
	for _, u := range c.URIs {
		if text := u.String(); !strings.HasPrefix(text, fingerprintPrefix) && g.exact[text] {
			return true
		}
	}
	return slices.ContainsFunc(c.DNSNames, func(name string) bool { return plainName(name) && g.folded[strings.ToLower(name)] })
}

// plainName reports whether a name is neither an address nor a URI nor a fingerprint.
func plainName(name string) bool { return !strings.ContainsAny(name, "@:") }

// decide decides on a visitor that presents a certificate, or none if p is nil.
func (g *gate) decide(p *Presented, now time.Time) Decision {
	if p == nil {
		return Decision{Rule: RuleCertificate}
	}
	return p.verdict(g, now)
}

// judge verifies what was presented. The decision holds between from and until if it lets
// the visitor in.
func (g *gate) judge(chain []*x509.Certificate, now time.Time) (d Decision, from, until time.Time) {
	if err := presentable(chain); err != nil {
		return Decision{Rule: RuleCertificateIssuer, Detail: err.Error()}, from, until
	}
	own, between := chain[0], x509.NewCertPool()
	// Only one certificate of each subject is used. So there is a single path upwards,
	// and the cost of verifying is bounded by the number of certificates.
	seen := make(map[string]bool)
	for _, c := range chain[1:] {
		if !seen[string(c.RawSubject)] {
			seen[string(c.RawSubject)] = true
			between.AddCert(c)
		}
	}
	chains, err := own.Verify(x509.VerifyOptions{
		Roots: g.authorities, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert != nil:
		return Decision{Rule: RuleCertificateTime, Detail: fmt.Sprintf("%s is valid from %s to %s", subjectOf(invalid.Cert), day(invalid.Cert.NotBefore), day(invalid.Cert.NotAfter))}, from, until
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return Decision{Rule: RuleCertificateIssuer, Detail: subjectOf(own) + " is not for clients: its extended key usage, or that of an authority, is another"}, from, until
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return Decision{Rule: RuleCertificateIssuer, Detail: subjectOf(own) + " is from none of the authorities"}, from, until
	case err != nil:
		return Decision{Rule: RuleCertificateIssuer, Detail: subjectOf(own) + ": " + strings.TrimPrefix(err.Error(), "x509: ")}, from, until
	case !g.names(own):
		return Decision{Rule: RuleCertificateWho, Detail: subjectOf(own) + " is not among those let in"}, from, until
	}
	for _, way := range chains {
		first, last := way[0].NotBefore, way[0].NotAfter
		for _, c := range way[1:] {
			first, last = later(first, c.NotBefore), earlier(last, c.NotAfter)
		}
		if last.After(until) {
			from, until = first, last
		}
	}
	return Decision{Allowed: true, Detail: fmt.Sprintf("%s presents a certificate that is good until %s", subjectOf(own), day(until))}, from, until
}

// presentable refuses what nobody needs to present.
func presentable(chain []*x509.Certificate) error {
	bytes := 0
	for _, c := range chain {
		bytes += len(c.Raw)
	}
	switch {
	case len(chain) == 0:
		return errors.New("there is no certificate")
	case len(chain) > MaxPresented:
		return fmt.Errorf("more than %d certificates were presented", MaxPresented)
	case bytes > MaxPresentedBytes:
		return fmt.Errorf("the certificates have more than %d KiB", MaxPresentedBytes>>10)
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func day(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// maxLabel limits what people are shown of a certificate.
const maxLabel = 256

// subjectOf returns a certificate's subject for people to read.
func subjectOf(c *x509.Certificate) string {
	if s := c.Subject.String(); s != "" && len(s) <= maxLabel {
		return s
	}
	return labelOf(c)
}

// labelOf returns the name by which a certificate's holder is known: the common name, or
// else the first of the other names, or else the fingerprint.
func labelOf(c *x509.Certificate) string {
	names := slices.Concat([]string{c.Subject.CommonName}, c.EmailAddresses, c.DNSNames)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, name := range names {
		if name != "" && len(name) <= maxLabel {
			return name
		}
	}
	return fingerprintOf(c)
}

func fingerprintOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return fingerprintPrefix + hex.EncodeToString(sum[:])
}

// asksCertificate reports whether a request may be let in by its certificate, or by that
// of its next connection.
func (p *Policy) asksCertificate(r Request) bool { return p.gate != nil && r.HTTP }

// presents decides by a request's certificate alone.
func (p *Policy) presents(r Request, now time.Time) Decision {
	switch {
	case p.gate == nil:
		return Decision{}
	case !r.HTTP:
		return Decision{Rule: RuleCertificate, Detail: "this type of tunnel has no client certificates"}
	case r.Unasked:
		return Decision{Rule: RuleCertificateUnasked, Detail: "the connection was not opened for the site, or before it asked for certificates"}
	}
	d := p.gate.decide(r.Certificate, now)
	d.Detail = cmp.Or(d.Detail, "no certificate was presented")
	return d
}

// ClientAuthorities returns the authorities whose certificates let visitors in, or nil if
// no certificate does.
func (p *Policy) ClientAuthorities() *x509.CertPool {
	if p.gate == nil {
		return nil
	}
	return p.gate.authorities
}

// CertificateRules identifies the rules for certificates, to tell them from those of
// another policy. The policy must have ClientAuthorities.
func (p *Policy) CertificateRules() [sha256.Size]byte { return p.gate.rules }

// LetsIn reports whether the presented certificates, or nil for none, let a visitor in by
// themselves. The policy must have ClientAuthorities.
func (p *Policy) LetsIn(presented *Presented, now time.Time) bool {
	return p.gate.decide(presented, now).Allowed
}
