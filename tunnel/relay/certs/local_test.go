package certs

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
	"testing/synctest"
	"time"
)

func localCertificates(t *testing.T) *Local {
	t.Helper()
	ca, err := NewLocalAuthority("test")
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLocal(ca, func(name string) string { return name })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// visited verifies the certificate of a site like a visitor whose clock shows now.
func visited(t *testing.T, l *Local, now time.Time) *x509.Certificate {
	t.Helper()
	cert, err := l.Get(&tls.ClientHelloInfo{ServerName: "site.test"})
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(l.CA())
	if _, err := cert.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: "site.test", CurrentTime: now}); err != nil {
		t.Errorf("at %v: %v", now, err)
	}
	return cert.Leaf
}

// TestLocalCertificateOfTheFutureIsNotServed sets the clock a year ahead, and back again:
// each synctest bubble begins at the same moment.
func TestLocalCertificateOfTheFutureIsNotServed(t *testing.T) {
	var l *Local
	synctest.Test(t, func(t *testing.T) {
		l = localCertificates(t)
		first := visited(t, l, time.Now())
		if again := visited(t, l, time.Now()); again != first {
			t.Error("a second visitor has another certificate")
		}
		time.Sleep(365 * 24 * time.Hour)
		if later := visited(t, l, time.Now()); later == first {
			t.Error("a year later the certificate is the same")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		first := visited(t, l, time.Now())
		if again := visited(t, l, time.Now()); again != first {
			t.Error("with the clock back, each visitor has another certificate")
		}
	})
}

// TestLocalCertificateOfAClockBeforeItsAuthority starts a relay without a clock of its
// own in the year 2000, for visitors whose clocks are right.
func TestLocalCertificateOfAClockBeforeItsAuthority(t *testing.T) {
	l, now := localCertificates(t), time.Now()
	synctest.Test(t, func(t *testing.T) {
		first := visited(t, l, now)
		if again := visited(t, l, now); again != first {
			t.Error("each visitor has another certificate")
		}
	})
}
