package config

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"adit/internal/textfile"
	"adit/tunnel/relay/certs"
	"adit/tunnel/relay/certs/dnsapi"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/sentence"
)

// ACME says how to get visitors' certificates from an authority. Without this section of
// relay.toml, no authority is contacted.
type ACME struct {
	Email      string   `toml:"email"`      // of the account
	Directory  string   `toml:"directory"`  // URL; empty: Let's Encrypt
	CA         string   `toml:"ca"`         // file; certificates to trust a private directory by
	Challenges []string `toml:"challenges"` // http-01, tls-alpn-01, dns-01
	Wildcard   bool     `toml:"wildcard"`   // one certificate for all names under the domain
	DNS        ACMEDNS  `toml:"dns"`
}

// ACMEDNS says who changes DNS records for dns-01.
type ACMEDNS struct {
	Provider   string   `toml:"provider"`    // rfc2136, or one of dnsapi.Names
	Server     string   `toml:"server"`      // for rfc2136: host:port
	Key        string   `toml:"key"`         // for rfc2136: name of the TSIG key, empty: not signed; otherwise the id that goes with the secret
	Secret     Secret   `toml:"secret"`      // for rfc2136: base64; otherwise the token or secret key
	SecretFile string   `toml:"secret_file"` // the same in a file
	Algorithm  string   `toml:"algorithm"`   // for rfc2136: the key's algorithm
	Endpoint   string   `toml:"endpoint"`    // not for rfc2136: https URL; empty: the host's public one
	CA         string   `toml:"ca"`          // not for rfc2136: file; certificates to trust the endpoint by
	Region     string   `toml:"region"`      // for route53: the region that requests are signed for
	Resolvers  []string `toml:"resolvers"`   // host:port; used to check whether a record is there
}

// secretVariable is the environment variable with the secret, if the configuration has
// none.
const secretVariable = "ADIT_ACME_DNS_SECRET"

// Secret is text that is never shown.
type Secret string

const hidden = "[hidden]"

func (Secret) String() string               { return hidden }
func (Secret) GoString() string             { return hidden }
func (Secret) LogValue() slog.Value         { return slog.StringValue(hidden) }
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// The challenges of ACME.
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
		if user, host, ok := strings.Cut(a.Email, "@"); !ok || user == "" || !names.Valid(strings.ToLower(host)) {
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
	return a.DNS.validate(a.Email)
}

func (d *ACMEDNS) validate(email string) (key, fault string) {
	for i, r := range d.Resolvers {
		if !hostPort(r) {
			return fmt.Sprintf("acme.dns.resolvers[%d]", i), fmt.Sprintf("%q is not host:port", r)
		}
	}
	if d.Secret != "" && d.SecretFile != "" {
		return "acme.dns.secret_file", "secret and secret_file exclude each other"
	}
	if d.Provider == providerRFC2136 {
		return d.validateUpdate()
	}
	if !slices.Contains(dnsapi.Names, d.Provider) {
		return "acme.dns.provider", fmt.Sprintf("%q is not rfc2136, %s; dns-01 needs one of them", d.Provider, strings.Join(dnsapi.Names, ", "))
	}
	for _, o := range []struct{ key, value string }{{"server", d.Server}, {"algorithm", d.Algorithm}} {
		if o.value != "" {
			return "acme.dns." + o.key, "is for rfc2136 alone"
		}
	}
	if key, fault := d.host(email).Validate(); key != "" {
		return "acme.dns." + key, fault
	}
	switch {
	case d.CA != "" && d.Endpoint == "":
		return "acme.dns.ca", "is for an endpoint of your own: set acme.dns.endpoint too"
	case d.Secret == "" && d.SecretFile == "" && os.Getenv(secretVariable) == "":
		return "acme.dns.secret_file", fmt.Sprintf("is required for %s, or secret, or the environment variable %s", d.Provider, secretVariable)
	case d.Provider == dnsapi.DNSPod && email == "":
		return "acme.email", "is required with dnspod, which wants an address in every request"
	}
	return "", ""
}

// host returns the configuration of one of dnsapi's DNS hosts, without its secret.
func (d *ACMEDNS) host(email string) dnsapi.Config {
	return dnsapi.Config{Provider: d.Provider, Key: d.Key, Endpoint: d.Endpoint, Region: d.Region, Contact: email}
}

func (d *ACMEDNS) validateUpdate() (key, fault string) {
	if !hostPort(d.Server) {
		return "acme.dns.server", fmt.Sprintf("%q is not host:port of the name server that takes updates", d.Server)
	}
	for _, o := range []struct{ key, value string }{{"endpoint", d.Endpoint}, {"ca", d.CA}, {"region", d.Region}} {
		if o.value != "" {
			return "acme.dns." + o.key, "is not for rfc2136"
		}
	}
	if (d.Key == "") != (d.Secret == "" && d.SecretFile == "" && os.Getenv(secretVariable) == "") {
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

// Certs returns the part of the certificate configuration that this section determines;
// the relay fills in the rest. It reads the files that the section names.
func (a *ACME) Certs(log *slog.Logger) (certs.Config, error) {
	c := certs.Config{
		Email: a.Email, Directory: a.Directory, HTTP01: a.has(challengeHTTP), TLSALPN01: a.has(challengeALPN),
		Wildcard: a.Wildcard, Resolvers: a.DNS.Resolvers,
	}
	var err error
	if c.Roots, err = ReadRoots("acme.ca", a.CA); err != nil {
		return c, err
	}
	if a.has(challengeDNS) {
		c.DNS, err = a.DNS.open(a.Email, log)
	}
	return c, err
}

// ReadRoots reads the certificates by which to trust a server. It returns nil if path is
// empty.
func ReadRoots(key, path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, sentence.File(key, path, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: %s has no certificate", key, path)
	}
	return roots, nil
}

// open returns the provider that changes the records.
func (d *ACMEDNS) open(email string, log *slog.Logger) (certs.DNSProvider, error) {
	secret, key, err := d.readSecret(log)
	if err != nil {
		return nil, err
	}
	if d.Provider == providerRFC2136 {
		if _, err := base64.StdEncoding.DecodeString(secret); err != nil {
			return nil, fmt.Errorf("%s does not hold base64", key)
		}
		return &certs.Update{Server: d.Server, Key: d.Key, Secret: secret, Algorithm: d.Algorithm}, nil
	}
	cfg := d.host(email)
	cfg.Secret = secret
	if cfg.Roots, err = ReadRoots("acme.dns.ca", d.CA); err != nil {
		return nil, err
	}
	p, err := dnsapi.New(cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return p, nil
}

const maxSecretFile = 8 << 10

// readSecret returns the secret, and the name of its source.
func (d *ACMEDNS) readSecret(log *slog.Logger) (secret, key string, err error) {
	switch {
	case d.Secret != "":
		return string(d.Secret), "acme.dns.secret", nil
	case d.SecretFile == "" && d.Key == "" && d.Provider == providerRFC2136:
		return "", "", nil // updates are not signed
	case d.SecretFile == "":
		return strings.TrimSpace(os.Getenv(secretVariable)), secretVariable, nil
	}
	secret, err = ReadSecretFile("acme.dns.secret_file", d.SecretFile, log)
	return secret, "acme.dns.secret_file: " + d.SecretFile, err
}

// ReadSecretFile reads the secret from the file that a key names.
func ReadSecretFile(key, path string, log *slog.Logger) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", sentence.File(key, path, err)
	}
	if info.Size() > maxSecretFile {
		return "", fmt.Errorf("%s: %s is too long for one secret", key, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return "", sentence.File(key, path, err)
	}
	text, err := textfile.Of(data)
	if err != nil {
		return "", fmt.Errorf("%s: %s: %w", key, path, err)
	}
	secret := strings.TrimSpace(text)
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", key, path)
	}
	if readByOthers(info) {
		log.Warn("everybody on this machine may read a secret; chmod 600 it", "key", key, "file", path)
	}
	return secret, nil
}
