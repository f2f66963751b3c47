// Package dnsapi changes the TXT records of DNS-01 challenges through the APIs of DNS
// hosts: Cloudflare, Route 53, AliDNS and DNSPod. It adds and removes single values of
// _acme-challenge names and touches no other record.
package dnsapi

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/libdns/libdns"
)

// The hosts' names in a configuration.
const (
	Cloudflare = "cloudflare"
	Route53    = "route53"
	AliDNS     = "alidns"
	DNSPod     = "dnspod"
)

// Names lists the hosts that New supports.
var Names = []string{Cloudflare, Route53, AliDNS, DNSPod}

// Config says which host to ask, and with which credentials.
type Config struct {
	Provider string // of Names
	// Key is the public part of the credentials: the id of an access key for Route 53 and
	// AliDNS, the token's id for DNSPod. Cloudflare has none.
	Key string
	// Secret is the other part: the secret access key, or the token.
	Secret string
	// Endpoint is the https address of the API. If empty, the host's public one.
	Endpoint string
	// Region is the region that requests to Route 53 are signed for. If empty, us-east-1.
	Region string
	// Contact is an email address that DNSPod requires in every request.
	Contact string
	Roots   *x509.CertPool // to trust the endpoint by; nil: the system's
}

// Validate returns the field at fault and what is wrong with it. It does not check
// Secret, which may come from elsewhere.
func (c Config) Validate() (field, fault string) {
	if !slices.Contains(Names, c.Provider) {
		return "provider", fmt.Sprintf("%q is not %s", c.Provider, strings.Join(Names, ", "))
	}
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return "endpoint", "is not an https URL without a query"
		}
	}
	switch {
	case c.Provider == Cloudflare && c.Key != "":
		return "key", "is not for cloudflare: its API token is the secret alone"
	case c.Provider == DNSPod && c.Key == "":
		return "key", "is required for dnspod: the id of the token"
	case c.Provider != Cloudflare && c.Key == "":
		return "key", fmt.Sprintf("is required for %s: the id of the access key", c.Provider)
	case strings.ContainsFunc(c.Key, unprintable) || len(c.Key) > 256:
		return "key", "has characters that no key has"
	case c.Provider != Route53 && c.Region != "":
		return "region", "is for route53 alone"
	case strings.ContainsFunc(c.Region, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' }):
		return "region", fmt.Sprintf("%q is not a region, as us-east-1", c.Region)
	}
	return "", ""
}

func unprintable(r rune) bool { return r <= ' ' || r > '~' }

// host is what differs between the hosts. Names are full, in lower case and without a
// trailing dot.
type host interface {
	// add creates a TXT record. It is no error if the record already exists.
	add(ctx context.Context, zone, name, value string) error
	// remove deletes a TXT record. It is no error if the record does not exist.
	remove(ctx context.Context, zone, name, value string) error
}

// Provider changes the records of challenges at one host. Several changes may be in
// progress at once.
type Provider struct {
	name string
	api  *api
	host host
}

// New returns the provider described by cfg. It does not contact the host yet.
func New(cfg Config) (*Provider, error) {
	if field, fault := cfg.Validate(); field != "" {
		return nil, fmt.Errorf("%s: %s", field, fault)
	}
	if cfg.Secret == "" || len(cfg.Secret) > 4096 || strings.ContainsFunc(cfg.Secret, unprintable) {
		return nil, fmt.Errorf("secret: must be one word and nothing else")
	}
	a, err := newAPI(cfg)
	if err != nil {
		return nil, err
	}
	p := &Provider{name: cfg.Provider, api: a}
	switch cfg.Provider {
	case Cloudflare:
		p.host = newCloudflare(a, cfg)
	case Route53:
		p.host = newRoute53(a, cfg)
	case AliDNS:
		p.host = newAliDNS(a, cfg)
	case DNSPod:
		p.host = newDNSPod(a, cfg)
	}
	return p, nil
}

// String returns the host's name. Nothing else of p is ever shown.
func (p *Provider) String() string { return p.name }

// GoString returns the same as String.
func (p *Provider) GoString() string { return p.name }

// AppendRecords adds the records of challenges to a zone.
func (p *Provider) AppendRecords(ctx context.Context, zone string, records []libdns.Record) ([]libdns.Record, error) {
	return p.each(zone, records, func(zone, name, value string) error { return p.host.add(ctx, zone, name, value) })
}

// DeleteRecords removes the records of challenges from a zone.
func (p *Provider) DeleteRecords(ctx context.Context, zone string, records []libdns.Record) ([]libdns.Record, error) {
	return p.each(zone, records, func(zone, name, value string) error { return p.host.remove(ctx, zone, name, value) })
}

func (p *Provider) each(zone string, records []libdns.Record, do func(zone, name, value string) error) ([]libdns.Record, error) {
	var done []libdns.Record
	zone = plain(zone)
	for _, r := range records {
		rr := r.RR()
		name := plain(libdns.AbsoluteName(rr.Name, zone+"."))
		if err := challenge(zone, name, rr); err != nil {
			return done, fmt.Errorf("%s, zone %s: %w", p.name, zone, err)
		}
		if err := do(zone, name, rr.Data); err != nil {
			return done, fmt.Errorf("%s, zone %s: %w", p.name, zone, err)
		}
		done = append(done, r)
	}
	return done, nil
}

func plain(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// challenge refuses anything that is not the record of a challenge.
func challenge(zone, name string, rr libdns.RR) error {
	switch {
	case rr.Type != "TXT":
		return fmt.Errorf("a record of type %s is none of a challenge", rr.Type)
	case !strings.HasPrefix(name, "_acme-challenge."):
		return fmt.Errorf("%s is no name of a challenge", name)
	case name != zone && !strings.HasSuffix(name, "."+zone):
		return fmt.Errorf("%s is not in the zone", name)
	case rr.Data == "" || len(rr.Data) > 255 || strings.ContainsFunc(rr.Data, func(r rune) bool { return unprintable(r) || r == '"' || r == '\\' }):
		return fmt.Errorf("the value for %s is none of a challenge", name)
	}
	return nil
}

// relative returns a name as it is written inside its zone.
func relative(name, zone string) string {
	if name == zone {
		return "@"
	}
	return strings.TrimSuffix(name, "."+zone)
}

// isValue reports whether a host's text for a TXT record stands for a value. Some hosts
// keep the quotes of the zone file.
func isValue(text, value string) bool {
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
	}
	return text == value
}

// isZone reports whether a host's name for a zone stands for that zone.
func isZone(name, zone string) bool { return plain(name) == zone }
