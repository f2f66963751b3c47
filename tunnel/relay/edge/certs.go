package edge

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	leafLife  = 30 * 24 * time.Hour
	leafRenew = 10 * 24 * time.Hour
	caLife    = 10 * 365 * 24 * time.Hour
	maxLeaves = 10_000
	backdate  = time.Hour // for visitors whose clock is slow
)

// NewVisitorCA makes the local authority of an https edge without a public
// certificate: its certificate and key as PEM. Visitors must be told to trust it.
func NewVisitorCA(name string) ([]byte, error) {
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

// LocalCertificates mints a certificate for each name that may have one, when
// it is first asked for.
type LocalCertificates struct {
	pair    tls.Certificate
	caPEM   []byte
	allowed func(name string) bool

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// NewLocalCertificates returns the certificates of an authority of NewVisitorCA.
func NewLocalCertificates(ca []byte, allowed func(name string) bool) (*LocalCertificates, error) {
	pair, err := tls.X509KeyPair(ca, ca)
	if err != nil {
		return nil, fmt.Errorf("read visitors' authority: %w", err)
	}
	caPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})
	return &LocalCertificates{pair: pair, caPEM: caPEM, allowed: allowed, leaves: make(map[string]*tls.Certificate)}, nil
}

// CA is the authority's certificate as PEM, for visitors.
func (l *LocalCertificates) CA() []byte { return bytes.Clone(l.caPEM) }

var errNoCertificate = errors.New("there is no site of this name")

// Get returns the certificate for a handshake.
func (l *LocalCertificates) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	name := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	if name == "" || !l.allowed(name) {
		return nil, errNoCertificate
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

// sane is now, or the authority's beginning: a clock that stands before it is
// wrong, and what was made by it no visitor would take, whose clock is right.
func (l *LocalCertificates) sane(now time.Time) time.Time {
	if first := l.pair.Leaf.NotBefore.Add(backdate); now.Before(first) {
		return first
	}
	return now
}

// Leaf returns the certificate that was last made for a name; nil: none yet.
func (l *LocalCertificates) Leaf(name string) *x509.Certificate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if leaf := l.leaves[name]; leaf != nil {
		return leaf.Leaf
	}
	return nil
}

func (l *LocalCertificates) mint(name string, now time.Time) (*tls.Certificate, error) {
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

// FileCertificate is a certificate in files, read again when they change.
type FileCertificate struct {
	certFile, keyFile string
	other             func(*tls.ClientHelloInfo) (*tls.Certificate, error)

	mu      sync.Mutex
	cert    *tls.Certificate
	changed time.Time
	checked time.Time
}

const fileCheck = 30 * time.Second

// NewFileCertificate reads a certificate and its key. For names that it does not
// cover, other is asked.
func NewFileCertificate(certFile, keyFile string, other func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (*FileCertificate, error) {
	f := &FileCertificate{certFile: certFile, keyFile: keyFile, other: other}
	return f, f.read(time.Now())
}

func (f *FileCertificate) read(now time.Time) error {
	f.checked = now
	changed := time.Time{}
	for _, name := range []string{f.certFile, f.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return fmt.Errorf("read certificate: %w", err)
		}
		if info.ModTime().After(changed) {
			changed = info.ModTime()
		}
	}
	if f.cert != nil && changed.Equal(f.changed) {
		return nil
	}
	cert, err := tls.LoadX509KeyPair(f.certFile, f.keyFile)
	if err != nil {
		return fmt.Errorf("read certificate %s: %w", f.certFile, err)
	}
	f.cert, f.changed = &cert, changed
	return nil
}

// Covers returns the certificate if it is for the name, else nil.
func (f *FileCertificate) Covers(name string) *x509.Certificate {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cert.Leaf.VerifyHostname(name) != nil {
		return nil
	}
	return f.cert.Leaf
}

// Get returns the certificate for a handshake.
func (f *FileCertificate) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	if now := time.Now(); now.Sub(f.checked) > fileCheck {
		_ = f.read(now) // a file that is half-written keeps the certificate before it
	}
	cert := f.cert
	f.mu.Unlock()
	if hello.ServerName == "" || cert.Leaf.VerifyHostname(hello.ServerName) == nil {
		return cert, nil
	}
	return f.other(hello)
}
