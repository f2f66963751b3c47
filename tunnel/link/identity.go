package link

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Validity of certificates. Clocks of small devices are often wrong, so a dialler does not check
// the relay's certificate against its clock; see verifyPeer.
const (
	authorityValidity = 50 * 365 * 24 * time.Hour
	leafValidity      = 365 * 24 * time.Hour
	clockSkew         = 24 * time.Hour
)

// Authority is a relay's own certificate authority: a self-signed certificate
// and its key. Agents trust it by its fingerprint, which their token carries.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority with a new ECDSA P-256 key.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "adit relay authority"},
		NotBefore:             now.Add(-clockSkew),
		NotAfter:              now.Add(authorityValidity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make the authority's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the authority's certificate: %w", err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// ParseAuthority parses the output of MarshalPEM.
func ParseAuthority(text []byte) (*Authority, error) {
	a := &Authority{}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		switch block.Type {
		case "CERTIFICATE":
			cert, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("read the authority's certificate: %w", err)
			}
			a.cert = cert
		case "PRIVATE KEY":
			key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, fmt.Errorf("read the authority's key: %w", err)
			}
			a.key, _ = key.(*ecdsa.PrivateKey)
		}
	}
	if a.cert == nil || a.key == nil {
		return nil, errors.New("read the authority: a certificate and an ECDSA key are needed")
	}
	if !a.key.PublicKey.Equal(a.cert.PublicKey) {
		return nil, errors.New("read the authority: the key is not the certificate's")
	}
	return a, nil
}

// MarshalPEM returns the certificate and private key as text, which must be kept secret.
func (a *Authority) MarshalPEM() ([]byte, error) {
	key, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("encode the authority's key: %w", err)
	}
	text := a.CertificatePEM()
	return append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...), nil
}

// CertificatePEM returns the certificate alone, which is public.
func (a *Authority) CertificatePEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Fingerprint returns the SHA-256 of the certificate (DER).
func (a *Authority) Fingerprint() [32]byte { return sha256.Sum256(a.cert.Raw) }

// Issue makes a certificate for a relay node with the given names (host names or IP addresses;
// agents do not check them), followed by the authority's own certificate. It is valid for a year: a
// relay issues itself a new one whenever it starts. If the clock is earlier than the start of the
// authority's validity, the clock is wrong, and the year starts with the authority's.
func (a *Authority) Issue(names ...string) (tls.Certificate, error) {
	return a.issue(names, x509.ExtKeyUsageServerAuth)
}

// IssueNode makes a certificate with which a relay node proves its identity to other nodes,
// whichever side dials. Agents have no certificates, and a certificate made by Issue is not
// accepted as one of these.
func (a *Authority) IssueNode(id string) (tls.Certificate, error) {
	return a.issue([]string{id}, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
}

func (a *Authority) issue(names []string, usages ...x509.ExtKeyUsage) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the node's key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	if first := a.cert.NotBefore.Add(clockSkew); now.Before(first) {
		now = first
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "adit relay"},
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(leafValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  usages,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make the node's certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the node's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return serial, nil
}

// maxChain is how many certificates a relay may present.
const maxChain = 4

// verifyPeer returns nil if the chain (DER, leaf first) contains the authority with that
// fingerprint and the authority issued the leaf for the given usage.
//
// Validity periods are not checked against the local clock, nor the leaf's against the authority's:
// otherwise an agent or a relay whose clock is at 1970 after a power cut could never reconnect, and
// trust rests on the fingerprint, not on the calendar.
func verifyPeer(fingerprint [32]byte, chain [][]byte, usage x509.ExtKeyUsage) error {
	if len(chain) < 1 || len(chain) > maxChain {
		return ErrUntrusted
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrUntrusted, err)
	}
	for _, der := range chain {
		sum := sha256.Sum256(der)
		if subtle.ConstantTimeCompare(sum[:], fingerprint[:]) != 1 {
			continue
		}
		authority, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("%w (%w)", ErrUntrusted, err)
		}
		if bytes.Equal(authority.Raw, leaf.Raw) {
			return ErrUntrusted // the authority itself serves nobody
		}
		authority.NotBefore, authority.NotAfter = leaf.NotBefore, leaf.NotAfter
		roots := x509.NewCertPool()
		roots.AddCert(authority)
		_, err = leaf.Verify(x509.VerifyOptions{
			Roots:       roots,
			CurrentTime: leaf.NotBefore,
			KeyUsages:   []x509.ExtKeyUsage{usage},
		})
		if err != nil {
			return fmt.Errorf("%w (%w)", ErrUntrusted, err)
		}
		return nil
	}
	return ErrUntrusted
}
