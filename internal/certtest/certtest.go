// Package certtest makes certificate authorities and client certificates for tests.
package certtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// Authority issues certificates. It is a root or was issued by another authority.
type Authority struct {
	Certificate *x509.Certificate
	key         crypto.Signer
	chain       [][]byte // from it to the one below the root
}

// Change modifies a certificate before it is issued.
type Change func(*x509.Certificate)

// New makes a root authority.
func New(tb testing.TB, name string, changes ...Change) *Authority {
	tb.Helper()
	return issue(tb, nil, name, append([]Change{authority}, changes...))
}

// Below makes an authority issued by another.
func (a *Authority) Below(tb testing.TB, name string, changes ...Change) *Authority {
	tb.Helper()
	return issue(tb, a, name, append([]Change{authority}, changes...))
}

// Client issues a client certificate, together with those between it and the root.
func (a *Authority) Client(tb testing.TB, name string, changes ...Change) tls.Certificate {
	tb.Helper()
	c := issue(tb, a, name, append([]Change{client}, changes...))
	return tls.Certificate{Certificate: append([][]byte{c.Certificate.Raw}, a.chain...), PrivateKey: c.key, Leaf: c.Certificate}
}

// Self makes a client certificate that is its own issuer, and not an authority.
func Self(tb testing.TB, name string, changes ...Change) tls.Certificate {
	tb.Helper()
	c := issue(tb, nil, name, append([]Change{client}, changes...))
	return tls.Certificate{Certificate: [][]byte{c.Certificate.Raw}, PrivateKey: c.key, Leaf: c.Certificate}
}

// Forged makes a client certificate issued by another client's certificate, which is not an
// authority.
func Forged(tb testing.TB, by tls.Certificate, name string) tls.Certificate {
	tb.Helper()
	a := &Authority{Certificate: by.Leaf, key: by.PrivateKey.(crypto.Signer), chain: by.Certificate}
	return a.Client(tb, name)
}

func authority(c *x509.Certificate) {
	c.IsCA, c.KeyUsage, c.ExtKeyUsage = true, x509.KeyUsageCertSign, nil
}

func client(c *x509.Certificate) {
	c.KeyUsage, c.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() string { return PEM(a.Certificate.Raw) }

// PEM encodes certificates.
func PEM(chain ...[]byte) string {
	var text []byte
	for _, der := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return string(text)
}

func issue(tb testing.TB, by *Authority, name string, changes []Change) *Authority {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	number, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	for _, change := range changes {
		change(template)
	}
	made := &Authority{key: key}
	parent, signer := template, crypto.Signer(key)
	if by != nil {
		parent, signer = by.Certificate, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		tb.Fatal(err)
	}
	if made.Certificate, err = x509.ParseCertificate(der); err != nil {
		tb.Fatal(err)
	}
	if by != nil {
		made.chain = append([][]byte{der}, by.chain...)
	}
	return made
}
