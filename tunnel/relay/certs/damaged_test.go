package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
)

// authority issues certificates, and counts them.
type authority struct {
	key    *ecdsa.PrivateKey
	issued int
	at     time.Time // by its clock; if zero, now
}

func (*authority) IssuerKey() string { return "acme.test-dir" }

func (a *authority) Issue(_ context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	a.issued++
	now := a.at
	if now.IsZero() {
		now = time.Now()
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(a.issued)), DNSNames: csr.DNSNames,
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(0, 3, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return &certmagic.IssuedCertificate{Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}, nil
}

// silent is a store that does not answer for one key.
type silent struct {
	certmagic.Storage
	key string
}

func (s *silent) Load(ctx context.Context, key string) ([]byte, error) {
	if key == s.key {
		return nil, errors.New("the store is away")
	}
	return s.Storage.Load(ctx, key)
}

// TestDamagedCertificateIsAskedForAgain damages what is stored for a name, and restarts.
func TestDamagedCertificateIsAskedForAgain(t *testing.T) {
	const name, issuer = "www.shop.test", "acme.test-dir"
	cert, key := certmagic.StorageKeys.SiteCert(issuer, name), certmagic.StorageKeys.SitePrivateKey(issuer, name)
	meta := certmagic.StorageKeys.SiteMeta(issuer, name)
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		key    string // whose value is another
		value  []byte
		away   bool // and is not read
		issued int
		fails  bool
	}{
		"nothing is damaged":         {issued: 1},
		"the certificate":            {key: cert, value: []byte("\x00\x00\x00"), issued: 2},
		"the certificate is another": {key: cert, value: leafPEM(t, time.Now().Add(time.Hour), name), issued: 2},
		"the key":                    {key: key, value: []byte("-----BEGIN"), issued: 2},
		"the rest":                   {key: meta, value: []byte("{"), issued: 2},
		"the store is away":          {key: key, value: []byte("-----BEGIN"), away: true, issued: 1, fails: true},
	} {
		t.Run(what, func(t *testing.T) {
			a, storage := newStateACME(t, false)
			from := &authority{key: signer}
			a.names.Issuers = []certmagic.Issuer{from}
			if err := a.obtain(name); err != nil {
				t.Fatal(err)
			}
			if c.key != "" {
				if err := storage.Store(t.Context(), c.key, c.value); err != nil {
					t.Fatal(err)
				}
			}
			cfg := a.cfg
			if c.away {
				cfg.Storage = &silent{storage, c.key}
			}
			again := NewACME(cfg)
			defer again.Close()
			again.names.Issuers = a.names.Issuers
			if err := again.obtain(name); err != nil != c.fails {
				t.Errorf("got %v, an error is wanted: %v", err, c.fails)
			}
			if from.issued != c.issued {
				t.Errorf("the authority gave %d certificates, want %d", from.issued, c.issued)
			}
			if _, err := storage.Load(t.Context(), key); errors.Is(err, fs.ErrNotExist) {
				t.Error("the key is gone")
			}
		})
	}
}
