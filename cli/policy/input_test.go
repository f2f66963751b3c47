package policy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/certtest"
)

// TestAuthoritiesComeFromAFile sets a policy with --client_authorities.
func TestAuthoritiesComeFromAFile(t *testing.T) {
	home := certtest.New(t, "Home")
	file := filepath.Join(t.TempDir(), "ca.crt")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(home.PEM())
	quoted, _ := json.Marshal(home.PEM())
	for in, want := range map[string]string{
		`{}`: `{"client_certificates":{"authorities":` + string(quoted) + `}}`,
		`{"bandwidth":123456789012345678,"client_certificates":{"authorities":"old","names":["ann"]}}`: `{"bandwidth":123456789012345678,"client_certificates":{"authorities":` + string(quoted) + `,"names":["ann"]}}`,
		`{"policy":{"rate":1,"client_certificates":null},"etag":"x"}`:                                  `{"client_certificates":{"authorities":` + string(quoted) + `},"rate":1}`,
	} {
		p := Input{issuer: file}
		if err := p.Read(strings.NewReader(in), nil); err != nil || string(p.Document) != want {
			t.Errorf("%s: %s, %v", in, p.Document, err)
		}
	}
	p := Input{issuer: file}
	if err := p.Read(strings.NewReader(`{"client_certificates":7}`), nil); err == nil || !strings.Contains(err.Error(), "client_certificates") {
		t.Errorf("got %v", err)
	}
	for text, want := range map[string]string{
		"": "no PEM certificate", "-----BEGIN EC PRIVATE KEY-----\n" + home.PEM(): "private key", strings.Repeat("x", maxCertificates+1): "over 64 KiB",
	} {
		write(text)
		if err := p.Read(strings.NewReader("{}"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: got %v, want %q", text, err, want)
		}
	}
}

// TestPoliciesOfOtherEditors are saved with a byte order mark, or in UTF-16.
func TestPoliciesOfOtherEditors(t *testing.T) {
	var p Input
	if err := p.Read(strings.NewReader("\ufeff{\"rate\": 5}\r\n"), nil); err != nil || strings.TrimSpace(string(p.Document)) != `{"rate": 5}` {
		t.Errorf("with a byte order mark: got %q, %v", p.Document, err)
	}
	if err := p.Read(strings.NewReader("\xff\xfe{\x00}\x00"), nil); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("in UTF-16: got %v", err)
	}
}
