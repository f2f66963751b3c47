package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"

	"adit/internal/wildcard"
)

func newStateACME(t *testing.T, dns bool) (*ACME, certmagic.Storage) {
	t.Helper()
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	cfg := Config{
		Domain: "relay.test", Directory: "https://acme.test/dir", HTTP01: true, Storage: storage,
		Subject: subjectOf("shop.relay.test", "www.shop.test", "*.all.relay.test", "*.all.test"),
	}
	if dns {
		cfg.Wildcard, cfg.DNS = true, &Update{}
	}
	a := NewACME(cfg)
	t.Cleanup(a.Close)
	return a, storage
}

// subjectOf returns a function for the given names and wildcards that may have
// certificates.
func subjectOf(names ...string) func(string) string {
	return func(name string) string {
		for _, subject := range []string{name, wildcard.Of(name)} {
			if slices.Contains(names, subject) {
				return subject
			}
		}
		return ""
	}
}

func leafPEM(t *testing.T, until time.Time, names ...string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: until, DNSNames: names,
		Subject: pkix.Name{CommonName: "R11", Organization: []string{"Good Authority"}},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestStateIsOfTheStoredCertificate(t *testing.T) {
	until := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	for _, test := range []struct {
		name, subject string
		wildcard      bool
	}{
		{"www.shop.test", "www.shop.test", false},
		{"shop.relay.test", "shop.relay.test", false},
		{"shop.relay.test", "*.relay.test", true},
		{"*.all.relay.test", "*.all.relay.test", true},
		{"one.all.relay.test", "*.all.relay.test", true},
		{"*.all.test", "*.all.test", true},
	} {
		a, storage := newStateACME(t, test.wildcard)
		if s := a.State(t.Context(), test.name); s != (State{}) {
			t.Errorf("%s: got %+v, want nothing yet", test.name, s)
		}
		key := certmagic.StorageKeys.SiteCert(a.configOf(test.subject).Issuers[0].IssuerKey(), test.subject)
		if err := storage.Store(t.Context(), key, leafPEM(t, until, test.subject)); err != nil {
			t.Fatal(err)
		}
		if s := a.State(t.Context(), test.name); s.Issuer != "Good Authority" || !s.NotAfter.Equal(until) || s.Err != nil || s.Trying {
			t.Errorf("%s: got %+v", test.name, s)
		}
		if err := storage.Store(t.Context(), key, []byte("half a fi")); err != nil {
			t.Fatal(err)
		}
		if s := a.State(t.Context(), test.name); s.Err == nil || !s.NotAfter.IsZero() {
			t.Errorf("%s, broken: got %+v", test.name, s)
		}
	}
}

func TestStateTellsOfTries(t *testing.T) {
	a, _ := newStateACME(t, false)
	a.mu.Lock()
	a.tries["www.shop.test"] = &try{done: make(chan struct{})}
	a.failures["shop.relay.test"] = &failure{err: errNotYet, until: time.Now().Add(time.Hour)}
	a.mu.Unlock()
	if s := a.State(t.Context(), "www.shop.test"); !s.Trying {
		t.Errorf("under way: got %+v", s)
	}
	if s := a.State(t.Context(), "shop.relay.test"); !errors.Is(s.Err, errNotYet) || s.Trying {
		t.Errorf("failed: got %+v", s)
	}
	if s := a.State(t.Context(), "stranger.example"); s != (State{}) {
		t.Errorf("a name that may have none: got %+v", s)
	}
}
