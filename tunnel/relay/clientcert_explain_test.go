package relay

import (
	"errors"
	"strings"
	"testing"

	"adit/internal/certtest"
	"adit/tunnel/relay/console"
)

// TestCertificatesAreExplained asks what would happen to a visitor that presents a
// certificate.
func TestCertificatesAreExplained(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("served"))
	home := certtest.New(t, "Home")
	s.setPolicy(t, "shop", certified(home.PEM(), "Ann"))
	for name, c := range map[string]struct{ certificate, tunnelType, rule, detail string }{
		"let in":         {certtest.PEM(home.Client(t, "Ann").Certificate...), "", "", "CN=Ann presents a certificate that is good until "},
		"between":        {certtest.PEM(home.Below(t, "Phones").Client(t, "Ann").Certificate...), "https", "", "CN=Ann presents"},
		"none":           {"", "", "client_certificates", "no certificate was presented"},
		"somebody else":  {certtest.PEM(home.Client(t, "Eve").Certificate...), "", "client_certificates_who", "CN=Eve is not among those let in"},
		"its own issuer": {certtest.PEM(certtest.Self(t, "Ann").Certificate...), "", "client_certificates_issuer", "CN=Ann is from none of the authorities"},
		"by http":        {certtest.PEM(home.Client(t, "Ann").Certificate...), "http", "client_certificates", "no certificate was presented"},
		"by tls":         {certtest.PEM(home.Client(t, "Ann").Certificate...), "tls", "client_certificates", "this type of tunnel has no client certificates"},
	} {
		e, err := s.operator().Explain(console.Question{Target: "shop", Address: "192.0.2.1", Type: c.tunnelType, Certificate: c.certificate})
		if err != nil || e.Rule != c.rule || len(e.Steps) != 1 || !strings.HasPrefix(e.Steps[0].Detail, c.detail) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	_, err := s.operator().Explain(console.Question{Target: "shop", Address: "192.0.2.1", Certificate: "ann.crt"})
	var refusal *console.Error
	if !errors.As(err, &refusal) || refusal.Field != "certificate" {
		t.Errorf("got %v", err)
	}
}
