package certs

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/caddyserver/certmagic"
)

// State is the state of a name's certificate.
type State struct {
	Issuer   string    // of the current certificate; empty: there is none
	NotAfter time.Time // zero: there is none
	Trying   bool      // a certificate is being requested
	Err      error     // of the last attempt, if that failed
}

// State returns the state of a name's certificate: the one that this node serves, or the
// one that another node has stored. It does not contact the authority.
func (a *ACME) State(ctx context.Context, name string) State {
	subject, ok := a.subject(name)
	if !ok {
		return State{}
	}
	var s State
	leaf := a.shown(name)
	if leaf == nil {
		var err error
		if leaf, err = a.stored(ctx, subject); err != nil && !errors.Is(err, fs.ErrNotExist) {
			s.Err = err
		}
	}
	if leaf != nil {
		s.Issuer, s.NotAfter = issuerOf(leaf), leaf.NotAfter.UTC()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Trying = a.tries[subject] != nil
	if f := a.failures[subject]; f != nil && !time.Now().Before(s.NotAfter) {
		s.Err = f.err // otherwise it was obtained since then, perhaps by another node
	} else if t, ok := a.renewals[subject]; ok && leaf != nil && !leaf.NotAfter.After(t.until) {
		s.Err = t.err
	}
	return s
}

// Until returns when the certificate that this node serves for a name expires. It returns
// false if this node has served none yet.
func (a *ACME) Until(name string) (time.Time, bool) {
	leaf := a.shown(name)
	if leaf == nil {
		return time.Time{}, false
	}
	return leaf.NotAfter, true
}

// sayAgain is how often a failing renewal of one certificate is logged.
const sayAgain = time.Hour

// trouble is a failed renewal.
type trouble struct {
	err   error
	until time.Time // until when that certificate is valid
	said  time.Time
}

// notRenewed records for State that a subject's certificate, which is valid until then,
// was not renewed. It logs that unless it did so within the last hour.
func (a *ACME) notRenewed(subject string, err error, until time.Time) {
	a.mu.Lock()
	t, now := a.renewals[subject], time.Now()
	say := now.Sub(t.said) > sayAgain
	if say {
		t.said = now
	}
	t.err, t.until = err, until
	if len(a.renewals) >= maxFailures {
		clear(a.renewals)
	}
	a.renewals[subject] = t
	a.mu.Unlock()
	if say {
		a.log.Warn("certificate is not renewed yet, the old one is served", "name", subject, "until", until.Truncate(time.Second), "error", err)
	}
}

// shown returns the certificate for a name that is in memory.
func (a *ACME) shown(name string) *x509.Certificate {
	var newest *x509.Certificate
	for _, c := range a.cache.AllMatchingCertificates(name) {
		if c.Leaf != nil && (newest == nil || c.Leaf.NotAfter.After(newest.NotAfter)) {
			newest = c.Leaf
		}
	}
	return newest
}

func (a *ACME) stored(ctx context.Context, subject string) (*x509.Certificate, error) {
	for _, issuer := range a.configOf(subject).Issuers {
		data, err := a.cfg.Storage.Load(ctx, certmagic.StorageKeys.SiteCert(issuer.IssuerKey(), subject))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the certificate of %s: %w", subject, err)
		}
		block, _ := pem.Decode(data)
		if block == nil {
			return nil, fmt.Errorf("read the certificate of %s: it is no PEM", subject)
		}
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read the certificate of %s: %w", subject, err)
		}
		return leaf, nil
	}
	return nil, fs.ErrNotExist
}

// issuerOf returns the name of an authority for people.
func issuerOf(leaf *x509.Certificate) string {
	if len(leaf.Issuer.Organization) > 0 {
		return leaf.Issuer.Organization[0]
	}
	return leaf.Issuer.CommonName
}
