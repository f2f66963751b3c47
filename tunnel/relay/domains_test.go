package relay

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/wire"
)

func domainOf(tb testing.TB, r *testRelay, name string) console.Domain {
	tb.Helper()
	for _, d := range r.operator().DomainList(tb.Context()) {
		if d.Domain == name {
			return d
		}
	}
	tb.Fatalf("%s is not listed", name)
	return console.Domain{}
}

func TestDomainsTellTheirCertificates(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := startRelay(t, cfg)
	r.serveHTTPS(t, "shop")
	if c := domainOf(t, r, "shop.relay.test").Certificate; c == nil || c.Source != console.CertificateLocal || c.NotAfter != nil {
		t.Errorf("before the first visit: got %+v", c)
	}
	shown, err := r.local.Get(&tls.ClientHelloInfo{ServerName: "shop.relay.test"})
	if err != nil {
		t.Fatal(err)
	}
	c := domainOf(t, r, "shop.relay.test").Certificate
	if c == nil || c.NotAfter == nil || !c.NotAfter.Equal(shown.Leaf.NotAfter) || c.Issuer == "" {
		t.Errorf("after the first visit: got %+v, want until %v", c, shown.Leaf.NotAfter)
	}
	// The same certificate from files, and a name that these do not cover.
	key, err := x509.MarshalPKCS8PrivateKey(shown.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cfg = testConfig(t.TempDir())
	cfg.TLSCert, cfg.TLSKey = filepath.Join(cfg.DataDir, "c.pem"), filepath.Join(cfg.DataDir, "k.pem")
	for name, block := range map[string]*pem.Block{
		cfg.TLSCert: {Type: "CERTIFICATE", Bytes: shown.Certificate[0]}, cfg.TLSKey: {Type: "PRIVATE KEY", Bytes: key},
	} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r = startRelay(t, cfg)
	r.serveHTTPS(t, "shop", "blog")
	if c := domainOf(t, r, "shop.relay.test").Certificate; c == nil || c.Source != console.CertificateFile || c.NotAfter == nil || !c.NotAfter.Equal(shown.Leaf.NotAfter) {
		t.Errorf("from a file: got %+v", c)
	}
	if got := metric(t, r, `adit_relay_certificate_end_time_seconds{source="file"}`); got != float64(shown.Leaf.NotAfter.Unix()) {
		t.Errorf("the file's certificate ends at %v by the figures, want %v", got, shown.Leaf.NotAfter)
	}
	if c := domainOf(t, r, "blog.relay.test").Certificate; c == nil || c.Source != console.CertificateLocal {
		t.Errorf("not in the file: got %+v", c)
	}
}

func TestErrorsSayWhichAddressTheyAreOf(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	grant := a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	url := func() string {
		t.Helper()
		list := r.operator().ErrorList()
		if len(list) != 1 {
			t.Fatalf("got %d errors, want 1", len(list))
		}
		return list[0].PublicURL
	}
	if err := a.call(http.MethodPost, wire.PathErrors, []wire.AgentError{{Time: time.Now(), Key: "k", Message: "m"}}, nil); err != nil {
		t.Fatal(err)
	}
	if got := url(); got == "" || got != grant.PublicURL {
		t.Errorf("served: got %q, want %q", got, grant.PublicURL)
	}
	a.close()
	eventually(t, "no address of a tunnel that is not served", func() bool { return url() == "" })
}

func TestErrorsOfAgentsThatLeftAreListed(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := startRelayWith(t, Options{Config: cfg, usageFlush: 20 * time.Millisecond})
	first, second := connect(t, r.client(t, "first"), "i1"), connect(t, r.client(t, "second"), "i2")
	now := time.Now()
	report := func(a *fakeAgent, at time.Time, text string) {
		t.Helper()
		if err := a.call(http.MethodPost, wire.PathErrors, []wire.AgentError{{Time: at, Key: "k", Message: text}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	report(first, now.Add(-time.Minute), "old")
	report(second, now.Add(-time.Second), "new")
	want := func(r *testRelay, want string) {
		t.Helper()
		var got string
		eventually(t, want, func() bool {
			var list []string
			for _, e := range r.operator().ErrorList() {
				state := "away"
				if e.Connected {
					state = "connected"
				}
				list = append(list, e.Client+" "+state+" "+e.Message)
			}
			got = strings.Join(list, "; ")
			return got == want
		})
	}
	want(r, "second connected new; first connected old")
	first.close()
	want(r, "second connected new; first away old")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	want(startRelay(t, cfg), "second away new; first away old")
}
