package link

import (
	"bytes"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func newTestAuthority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issued(t *testing.T, a *Authority) [][]byte {
	t.Helper()
	cert, err := a.Issue("relay.example", "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	return cert.Certificate
}

func TestAuthoritySurvivesItsText(t *testing.T) {
	a := newTestAuthority(t)
	text, err := a.MarshalPEM()
	if err != nil {
		t.Fatal(err)
	}
	b, err := ParseAuthority(text)
	if err != nil {
		t.Fatal(err)
	}
	if a.Fingerprint() != b.Fingerprint() {
		t.Error("the fingerprint changed")
	}
	if err := verifyPeer(a.Fingerprint(), issued(t, b), x509.ExtKeyUsageServerAuth); err != nil {
		t.Errorf("a certificate of the parsed authority: %v", err)
	}
	if bytes.Contains(a.CertificatePEM(), []byte("PRIVATE")) {
		t.Error("the public text has the private key")
	}
}

func TestParseAuthorityRefuses(t *testing.T) {
	a, b := newTestAuthority(t), newTestAuthority(t)
	whole, _ := a.MarshalPEM()
	other, _ := b.MarshalPEM()
	foreignKey := string(a.CertificatePEM()) + string(other[bytes.Index(other, []byte("-----BEGIN PRIVATE")):])
	tests := map[string]string{
		"nothing":          "",
		"no key":           string(a.CertificatePEM()),
		"no certificate":   string(whole[bytes.Index(whole, []byte("-----BEGIN PRIVATE")):]),
		"another's key":    foreignKey,
		"a broken body":    strings.Replace(string(whole), "MII", "AAA", 1),
		"something else":   "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n",
		"a key that is no": "-----BEGIN PRIVATE KEY-----\naGVsbG8=\n-----END PRIVATE KEY-----\n",
	}
	for name, text := range tests {
		if _, err := ParseAuthority([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestVerifyPeer(t *testing.T) {
	ours, other := newTestAuthority(t), newTestAuthority(t)
	good := issued(t, ours)
	strange := issued(t, other)
	tests := []struct {
		name  string
		chain [][]byte
		ok    bool
	}{
		{"issued by the authority", good, true},
		{"nothing", nil, false},
		{"the authority alone", [][]byte{ours.cert.Raw}, false},
		{"without the authority", good[:1], false},
		{"of another authority", strange, false},
		{"another's, with ours shown beside", [][]byte{strange[0], ours.cert.Raw}, false},
		{"another's chain and ours", [][]byte{strange[0], strange[1], ours.cert.Raw}, false},
		{"not a certificate", [][]byte{{1, 2, 3}, ours.cert.Raw}, false},
		{"a chain without end", [][]byte{good[0], strange[1], strange[1], strange[1], good[1]}, false},
	}
	for _, test := range tests {
		err := verifyPeer(ours.Fingerprint(), test.chain, x509.ExtKeyUsageServerAuth)
		if test.ok && err != nil {
			t.Errorf("%s: got %v, want it trusted", test.name, err)
		}
		if !test.ok && !errors.Is(err, ErrUntrusted) {
			t.Errorf("%s: got %v, want ErrUntrusted", test.name, err)
		}
	}
}

// TestRelayWhoseClockStandsBeforeItsAuthority has a relay without a clock of its
// own start in 2000, with an authority made when the clock was right.
func TestRelayWhoseClockStandsBeforeItsAuthority(t *testing.T) {
	a := newTestAuthority(t)
	var chain [][]byte
	synctest.Test(t, func(t *testing.T) {
		chain = issued(t, a)
		if err := verifyPeer(a.Fingerprint(), chain, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("for an agent whose clock is as wrong: %v", err)
		}
	})
	if err := verifyPeer(a.Fingerprint(), chain, x509.ExtKeyUsageServerAuth); err != nil {
		t.Errorf("for an agent whose clock is right: %v", err)
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		t.Fatal(err)
	}
	if now := time.Now(); now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		t.Errorf("it is valid from %v to %v, which is not now", leaf.NotBefore, leaf.NotAfter)
	}
}

// TestTimesOfValidityAreNotHeldAgainstEachOther has a certificate of a relay
// that did not look at when its authority begins.
func TestTimesOfValidityAreNotHeldAgainstEachOther(t *testing.T) {
	var old, late *Authority
	synctest.Test(t, func(t *testing.T) {
		old = newTestAuthority(t)
		time.Sleep(authorityValidity + time.Hour)
		late = &Authority{cert: old.cert, key: old.key}
		chain := issued(t, late)
		if err := verifyPeer(old.Fingerprint(), chain, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("issued after the authority's end: %v", err)
		}
	})
	early := newTestAuthority(t)
	cert := *early.cert
	cert.NotBefore = time.Unix(0, 0)
	synctest.Test(t, func(t *testing.T) {
		chain := issued(t, &Authority{cert: &cert, key: early.key})
		if err := verifyPeer(early.Fingerprint(), chain, x509.ExtKeyUsageServerAuth); err != nil {
			t.Errorf("issued before the authority's beginning: %v", err)
		}
	})
}
