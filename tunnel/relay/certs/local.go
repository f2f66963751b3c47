package certs

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"
)

const (
	leafLife  = 30 * 24 * time.Hour
	leafRenew = 10 * 24 * time.Hour
	caLife    = 10 * 365 * 24 * time.Hour
	maxLeaves = 10_000
	backdate  = time.Hour // for visitors whose clocks are slow
)

// NewLocalAuthority creates the local authority of an https edge without a public
// certificate. It returns the authority's certificate and key as PEM. Visitors must be
// told to trust it.
func NewLocalAuthority(name string) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make visitors' authority: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber:          serial(),
		Subject:               pkix.Name{CommonName: "adit local authority " + name},
		NotBefore:             time.Now().Add(-backdate),
		NotAfter:              time.Now().Add(caLife),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make visitors' authority: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("make visitors' authority: %w", err)
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...), nil
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n.Add(n, big.NewInt(1))
}

// Local issues a certificate for each subject that may have one, when it is first
// requested.
type Local struct {
	pair    tls.Certificate
	caPEM   []byte
	subject func(name string) string

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// NewLocal returns the certificates of an authority made by NewLocalAuthority. subject
// returns what the certificate of a name must be for: the name, or the wildcard that
// covers it, or "" if it may have none.
func NewLocal(ca []byte, subject func(name string) string) (*Local, error) {
	pair, err := tls.X509KeyPair(ca, ca)
	if err != nil {
		return nil, fmt.Errorf("read visitors' authority: %w", err)
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	return &Local{pair: pair, caPEM: caPEM, subject: subject, leaves: make(map[string]*tls.Certificate)}, nil
}

// CA returns the authority's certificate as PEM, for visitors.
func (l *Local) CA() []byte { return bytes.Clone(l.caPEM) }

// Get returns the certificate for a handshake, or nil, like ACME.Get.
func (l *Local) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := l.subject(nameOf(hello))
	if name == "" {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.sane(time.Now())
	if leaf := l.leaves[name]; leaf != nil && leaf.Leaf.NotAfter.Sub(now) > leafRenew && !leaf.Leaf.NotBefore.After(now) {
		return leaf, nil
	}
	leaf, err := l.mint(name, now)
	if err != nil {
		return nil, err
	}
	if len(l.leaves) >= maxLeaves {
		clear(l.leaves)
	}
	l.leaves[name] = leaf
	return leaf, nil
}

// sane returns now, but not before the authority's own start. A clock that shows an
// earlier time is wrong, and no visitor with a correct clock would accept a certificate
// made by it.
func (l *Local) sane(now time.Time) time.Time {
	if first := l.pair.Leaf.NotBefore.Add(backdate); now.Before(first) {
		return first
	}
	return now
}

// Leaf returns the certificate that was last made for a subject, or nil if there is none
// yet.
func (l *Local) Leaf(name string) *x509.Certificate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if leaf := l.leaves[name]; leaf != nil {
		return leaf.Leaf
	}
	return nil
}

func (l *Local) mint(name string, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make certificate of %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: serial(),
		Subject:      pkix.Name{CommonName: name[:min(len(name), 64)]},
		NotBefore:    now.Add(-backdate),
		NotAfter:     now.Add(leafLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, l.pair.Leaf, key.Public(), l.pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("make certificate of %s: %w", name, err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("make certificate of %s: %w", name, err)
	}
	return &tls.Certificate{Certificate: [][]byte{der, l.pair.Certificate[0]}, PrivateKey: key, Leaf: parsed}, nil
}
