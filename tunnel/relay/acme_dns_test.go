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
)

const hostSecret = "s3cretOfTheDNSHost"

// dnsHost is a stand-in for a DNS host's interface and how a relay is told of it.
type dnsHost struct {
	zones *dnsapitest.Zones
	cfg   ACMEDNS
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
	h.cfg = ACMEDNS{Provider: provider, Key: "KEYID", SecretFile: secret, Endpoint: url, CA: ca}
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

func TestTheSecretOfADNSHost(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name, variable string
		cfg            ACMEDNS
		want           string // of the error; empty: none
	}{
		{"a file", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("a", "tok\n", 0o600)}, ""},
		{"the configuration", "", ACMEDNS{Provider: "cloudflare", Secret: "tok"}, ""},
		{"the environment", "tok", ACMEDNS{Provider: "cloudflare"}, ""},
		{"the environment, for an update", zoneSecret, ACMEDNS{Provider: "rfc2136", Server: "a:53", Key: "k"}, ""},
		{"not signed", "", ACMEDNS{Provider: "rfc2136", Server: "a:53"}, ""},
		{"no file", "", ACMEDNS{Provider: "cloudflare", SecretFile: filepath.Join(dir, "none")}, "acme.dns.secret_file: "},
		{"an empty file", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("b", "\n", 0o600)}, "is empty"},
		{"two words", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("c", "a b", 0o600)}, "must be one word"},
		{"a long file", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("d", strings.Repeat("x", maxSecretFile+1), 0o600)}, "too long"},
		{"not base64", "", ACMEDNS{Provider: "rfc2136", Server: "a:53", Key: "k", SecretFile: file("e", "!!", 0o600)}, "does not hold base64"},
		{"no certificate", "", ACMEDNS{Provider: "cloudflare", Secret: "tok", Endpoint: "https://a.test", CA: file("f", "no", 0o600)}, "acme.dns.ca: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(secretVariable, tt.variable)
			if key, fault := tt.cfg.validate(""); key != "" {
				t.Fatalf("the configuration is refused: %s: %s", key, fault)
			}
			var log lockedBuffer
			_, err := tt.cfg.open("", slog.New(slog.NewTextHandler(&log, nil)))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if log.String() != "" {
				t.Errorf("it warns: %s", log.String())
			}
		})
	}
	if os.PathSeparator == '/' {
		var log lockedBuffer
		cfg := ACMEDNS{Provider: "cloudflare", SecretFile: file("g", "t0psecret", 0o600)}
		if err := os.Chmod(cfg.SecretFile, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := cfg.open("", slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "chmod 600") || strings.Contains(log.String(), "t0psecret") {
			t.Errorf("a file that everybody may read: the log has %q", log.String())
		}
	}
}

func TestARelayWithAWrongDNSHostDoesNotStart(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.ACME = &ACME{Challenges: []string{"dns-01"}, DNS: ACMEDNS{Provider: "cloudflare", SecretFile: filepath.Join(t.TempDir(), "none")}}
	_, err := New(Options{Config: cfg})
	if err == nil || !strings.Contains(err.Error(), "acme.dns.secret_file: ") {
		t.Errorf("got %v", err)
	}
}
