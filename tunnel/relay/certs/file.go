package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"adit/internal/textfile"
	"adit/internal/wildcard"
)

// File is a certificate in files. Run reads them again when they change, so that a
// handshake never waits for a disk.
type File struct {
	certFile, keyFile string
	other             func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	every             time.Duration // between two checks

	cert atomic.Pointer[tls.Certificate]
	read filesState // of cert; used by New and then by Run
}

// filesState identifies a state of the files.
type filesState [2]struct {
	changed time.Time
	size    int64
}

const fileCheck = 30 * time.Second

// NewFile reads a certificate and its key. Names that it does not cover are passed to
// other.
func NewFile(certFile, keyFile string, other func(*tls.ClientHelloInfo) (*tls.Certificate, error)) (*File, error) {
	f := &File{certFile: certFile, keyFile: keyFile, other: other, every: fileCheck}
	now, err := f.state()
	if err != nil {
		return nil, err
	}
	return f, f.load(now)
}

func (f *File) state() (s filesState, err error) {
	for i, name := range []string{f.certFile, f.keyFile} {
		info, err := os.Stat(name)
		if err != nil {
			return s, fmt.Errorf("read certificate: %w", err)
		}
		s[i].changed, s[i].size = info.ModTime(), info.Size()
	}
	return s, nil
}

func (f *File) load(now filesState) error {
	cert, err := readPair(f.certFile, f.keyFile)
	if err != nil {
		return fmt.Errorf("read certificate %s: %w", f.certFile, err)
	}
	f.cert.Store(&cert)
	f.read = now
	return nil
}

func readPair(certFile, keyFile string) (tls.Certificate, error) {
	var texts [2][]byte
	for i, name := range []string{certFile, keyFile} {
		data, err := os.ReadFile(name)
		if err != nil {
			return tls.Certificate{}, err
		}
		text, err := textfile.Of(data)
		if err != nil {
			return tls.Certificate{}, err
		}
		texts[i] = []byte(text)
	}
	cert, err := tls.X509KeyPair(texts[0], texts[1])
	if block, _ := pem.Decode(texts[1]); err != nil && block != nil &&
		(block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED")) {
		err = errors.New("the key has a passphrase: save it without one")
	}
	return cert, err
}

// Run follows the files until ctx ends. Files that do not match, for example while they
// are being written, leave the previous certificate in use. Run logs what Fault finds,
// also for the first certificate.
func (f *File) Run(ctx context.Context, log *slog.Logger, domain string, others bool) {
	tick := time.NewTicker(f.every)
	defer tick.Stop()
	told, away, warned := f.read, false, ""
	for {
		fault := f.Fault(domain, others, time.Now())
		if fault != "" && fault != warned {
			log.Warn("browsers do not take the certificate of tls_cert", "reason", fault, "file", f.certFile)
		}
		warned = fault
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := f.state()
		if err != nil {
			if !away {
				log.Warn("the certificate's files cannot be read; the one before stays in use", "error", err)
			}
			away = true
			continue
		}
		away = false
		if now == f.read {
			continue
		}
		if err := f.load(now); err == nil {
			log.Info("certificate read again", "file", f.certFile, "until", f.cert.Load().Leaf.NotAfter)
		} else if now != told {
			told = now
			log.Warn("the new certificate cannot be used; the one before stays in use", "error", err)
		}
	}
}

// Until returns when the certificate expires.
func (f *File) Until() time.Time { return f.cert.Load().Leaf.NotAfter }

// Covers returns the certificate if it covers the name, or all names of a wildcard.
// Otherwise it returns nil.
func (f *File) Covers(name string) *x509.Certificate {
	leaf := f.cert.Load().Leaf
	if leaf.VerifyHostname(wildcard.Example(name)) != nil {
		return nil
	}
	return leaf
}

// Fault returns why visitors of names below domain would get a warning about the
// certificate at a given time, or "" if they would not. others says whether names that it
// does not cover have certificates that browsers trust.
func (f *File) Fault(domain string, others bool, at time.Time) string {
	leaf := f.cert.Load().Leaf
	switch {
	case at.After(leaf.NotAfter):
		return "it has expired: renew it"
	case at.Before(leaf.NotBefore):
		return "it is not valid yet: is this machine's clock right?"
	case !others && f.Covers("*."+domain) == nil:
		return "it is not for the names of tunnels: use one for the wildcard *." + domain + ", or add [acme]"
	}
	return ""
}

// Get returns the certificate for a handshake, or nil, like ACME.Get.
func (f *File) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	cert := f.cert.Load()
	if hello.ServerName == "" || cert.Leaf.VerifyHostname(hello.ServerName) == nil {
		return cert, nil
	}
	return f.other(hello)
}
