package relay

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"adit/tunnel/relay/certs"
)

// ACME is how visitors' certificates are got from an authority. Without the
// section there are none of it.
type ACME struct {
	Email      string   `toml:"email"`      // of the account
	Directory  string   `toml:"directory"`  // URL; empty: Let's Encrypt
	CA         string   `toml:"ca"`         // file; to trust a private directory by
	Challenges []string `toml:"challenges"` // http-01, tls-alpn-01, dns-01
	Wildcard   bool     `toml:"wildcard"`   // one certificate for all names under the domain
	DNS        ACMEDNS  `toml:"dns"`
}

// ACMEDNS is who changes DNS records for dns-01.
type ACMEDNS struct {
	Provider   string   `toml:"provider"`    // rfc2136
	Server     string   `toml:"server"`      // host:port
	Key        string   `toml:"key"`         // name of the TSIG key; empty: not signed
	Secret     Secret   `toml:"secret"`      // of the key, base64
	SecretFile string   `toml:"secret_file"` // the same in a file
	Algorithm  string   `toml:"algorithm"`   // of the key
	Resolvers  []string `toml:"resolvers"`   // host:port; asked whether a record is there
}

// Secret is text that is never shown.
type Secret string

const hidden = "[hidden]"

func (Secret) String() string               { return hidden }
func (Secret) GoString() string             { return hidden }
func (Secret) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// Challenges of ACME.
const (
	challengeHTTP = "http-01"
	challengeALPN = "tls-alpn-01"
	challengeDNS  = "dns-01"
)

const providerRFC2136 = "rfc2136"

func (a *ACME) has(challenge string) bool {
	if len(a.Challenges) == 0 {
		return challenge == challengeHTTP || challenge == challengeALPN
	}
	return slices.Contains(a.Challenges, challenge)
}

// validate returns the key at fault and what is wrong with it.
func (a *ACME) validate() (key, fault string) {
	if a.Email != "" {
		if user, host, ok := strings.Cut(a.Email, "@"); !ok || user == "" || !validName(strings.ToLower(host)) {
			return "acme.email", fmt.Sprintf("%q is not an email address", a.Email)
		}
	}
	if a.Directory != "" {
		if u, err := url.Parse(a.Directory); err != nil || u.Scheme != "https" || u.Host == "" {
			return "acme.directory", fmt.Sprintf("%q is not an https URL", a.Directory)
		}
	}
	for i, c := range a.Challenges {
		if c != challengeHTTP && c != challengeALPN && c != challengeDNS {
			return fmt.Sprintf("acme.challenges[%d]", i), fmt.Sprintf("%q is not http-01, tls-alpn-01 or dns-01", c)
		}
	}
	if a.Wildcard && !a.has(challengeDNS) {
		return "acme.wildcard", `needs "dns-01" in acme.challenges: authorities give wildcards for nothing else`
	}
	if !a.has(challengeDNS) {
		return "", ""
	}
	d := a.DNS
	if d.Provider != providerRFC2136 {
		return "acme.dns.provider", `must be "rfc2136" for dns-01`
	}
	if !hostPort(d.Server) {
		return "acme.dns.server", fmt.Sprintf("%q is not host:port of the name server that takes updates", d.Server)
	}
	for i, r := range d.Resolvers {
		if !hostPort(r) {
			return fmt.Sprintf("acme.dns.resolvers[%d]", i), fmt.Sprintf("%q is not host:port", r)
		}
	}
	switch {
	case d.Secret != "" && d.SecretFile != "":
		return "acme.dns.secret_file", "secret and secret_file exclude each other"
	case (d.Key == "") != (d.Secret == "" && d.SecretFile == ""):
		return "acme.dns.key", "key and its secret go together"
	}
	if _, err := base64.StdEncoding.DecodeString(string(d.Secret)); err != nil {
		return "acme.dns.secret", "is not base64"
	}
	if _, ok := certs.Algorithms[strings.ToLower(d.Algorithm)]; d.Algorithm != "" && !ok {
		return "acme.dns.algorithm", fmt.Sprintf("%q is not hmac-sha224, hmac-sha256, hmac-sha384 or hmac-sha512", d.Algorithm)
	}
	return "", ""
}

func hostPort(text string) bool {
	host, port, err := net.SplitHostPort(text)
	return err == nil && host != "" && port != ""
}

// openACME sets up the certificates of an authority, if it is configured. The
// edge's listeners are open.
func (r *Relay) openACME(plain, secure net.Addr) error {
	a := r.cfg.ACME
	if a == nil {
		return nil
	}
	limits := r.cfg.Limits.edge()
	c := certs.Config{
		Domain: r.cfg.Domain, Email: a.Email, Directory: a.Directory, HTTP01: a.has(challengeHTTP), TLSALPN01: a.has(challengeALPN),
		Wildcard: a.Wildcard, Resolvers: a.DNS.Resolvers, Storage: r.store.Certificates, Allowed: r.claimed,
		Wait: limits.HeaderTime * 3 / 4, // what is left is for the handshake itself
		Log:  r.log,
	}
	c.HTTP, _ = netip.ParseAddrPort(plain.String())
	c.HTTPS, _ = netip.ParseAddrPort(secure.String())
	if a.CA != "" {
		pem, err := os.ReadFile(a.CA)
		if err != nil {
			return fmt.Errorf("acme.ca: %w", err)
		}
		c.Roots = x509.NewCertPool()
		if !c.Roots.AppendCertsFromPEM(pem) {
			return fmt.Errorf("acme.ca: %s has no certificate", a.CA)
		}
	}
	if a.has(challengeDNS) {
		secret := string(a.DNS.Secret)
		if a.DNS.SecretFile != "" {
			text, err := os.ReadFile(a.DNS.SecretFile)
			if err != nil {
				return fmt.Errorf("acme.dns.secret_file: %w", err)
			}
			secret = strings.TrimSpace(string(text))
			if _, err := base64.StdEncoding.DecodeString(secret); err != nil || secret == "" {
				return fmt.Errorf("acme.dns.secret_file: %s does not hold base64", a.DNS.SecretFile)
			}
		}
		c.DNS = &certs.Update{Server: a.DNS.Server, Key: a.DNS.Key, Secret: secret, Algorithm: a.DNS.Algorithm}
	}
	if r.opts.certs != nil {
		r.opts.certs(&c)
	}
	r.acme = certs.New(c)
	return nil
}
