package relay

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"adit/tunnel/relay/certs/dnsapi"
	"adit/tunnel/relay/certs/dnsapi/dnsapitest"
	"adit/tunnel/relay/config"
)

const hostSecret = "s3cretOfTheDNSHost"

// dnsHost is a stand-in for a DNS host's interface and how a relay is told of it.
type dnsHost struct {
	zones *dnsapitest.Zones
	cfg   config.ACMEDNS
}

func startDNSHost(tb testing.TB, provider string) *dnsHost {
	tb.Helper()
	h := &dnsHost{zones: dnsapitest.NewZones("other.test", "relay.test")}
	handler := map[string]http.Handler{
		dnsapi.Cloudflare: dnsapitest.Cloudflare(h.zones, hostSecret),
		dnsapi.Route53:    dnsapitest.Route53(h.zones, "KEYID", hostSecret, "us-gov-west-1"),
		dnsapi.AliDNS:     dnsapitest.AliDNS(h.zones, "KEYID", hostSecret),
		dnsapi.DNSPod:     dnsapitest.DNSPod(h.zones, "KEYID", hostSecret, "默认"),
	}[provider]
	url, roots := dnsapitest.Serve(tb, handler)
	dir := tb.TempDir()
	ca, secret := filepath.Join(dir, "host-ca.pem"), filepath.Join(dir, "host.secret")
	if err := os.WriteFile(ca, roots, 0o600); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(secret, []byte(hostSecret+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	h.cfg = config.ACMEDNS{Provider: provider, Key: "KEYID", SecretFile: secret, Endpoint: url, CA: ca}
	switch provider {
	case dnsapi.Cloudflare:
		h.cfg.Key = ""
		h.cfg.Endpoint += "/client/v4"
	case dnsapi.Route53:
		h.cfg.Region = "us-gov-west-1"
	}
	return h
}

func TestACMEWildcardByTheInterfacesOfDNSHosts(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, provider := range dnsapi.Names {
		t.Run(provider, func(t *testing.T) {
			l := newACMELab(t, "dns-01")
			h := startDNSHost(t, provider)
			l.zone.also(h.zones.Texts)
			h.cfg.Resolvers = []string{l.zone.addr}
			l.cfg.ACME.Email, l.cfg.ACME.Wildcard, l.cfg.ACME.DNS = "ops@relay.test", true, h.cfg
			if err := l.cfg.Validate(); err != nil {
				t.Fatal(err)
			}
			before := h.zones.All()
			l.start(t)
			var log lockedBuffer
			r := startRelayWith(t, Options{Config: l.cfg, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			r.serveHTTPS(t, "shop")
			if cert := mustCertificate(t, r, "shop.relay.test"); cert.DNSNames[0] != "*.relay.test" {
				t.Errorf("got a certificate of %v", cert.DNSNames)
			}
			if n := h.zones.Changes(); n < 2 {
				t.Errorf("%d changes of the zone, want a record made and removed", n)
			}
			if after := h.zones.All(); !slices.Equal(before, after) {
				t.Errorf("the zone has changed:\nbefore %v\nafter  %v", before, after)
			}
			if refused := h.zones.Refused(); len(refused) > 0 {
				t.Errorf("the stand-in refused requests: %v", refused)
			}
			if strings.Contains(log.String(), hostSecret) {
				t.Error("the secret is in the log")
			}
		})
	}
}

func TestARelayWithAWrongDNSHostDoesNotStart(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.ACME = &config.ACME{Challenges: []string{"dns-01"}, DNS: config.ACMEDNS{Provider: "cloudflare", SecretFile: filepath.Join(t.TempDir(), "none")}}
	_, err := New(Options{Config: cfg})
	if err == nil || !strings.Contains(err.Error(), "acme.dns.secret_file: ") {
		t.Errorf("got %v", err)
	}
}
