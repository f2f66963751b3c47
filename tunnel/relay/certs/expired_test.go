package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

var errAway = errors.New("the authority is away")

// flaky is an authority that fails as long as err is set.
type flaky struct {
	authority
	err atomic.Pointer[error]
}

// newAuthority returns an authority with its own key.
func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return authority{key: key}
}

func (f *flaky) fail(err error) {
	if err == nil {
		f.err.Store(nil)
		return
	}
	f.err.Store(&err)
}

func (f *flaky) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if err := f.err.Load(); err != nil {
		return nil, certmagic.ErrNoRetry{Err: *err}
	}
	return f.authority.Issue(ctx, csr)
}

// visitor returns the certificate that a visitor of a name sees.
func visitor(t *testing.T, a *ACME, name string) *x509.Certificate {
	t.Helper()
	c, s := net.Pipe()
	defer c.Close()
	defer s.Close()
	go tls.Server(s, &tls.Config{GetCertificate: a.Get}).Handshake()
	client := tls.Client(c, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	if err := client.Handshake(); err != nil {
		t.Fatalf("visit %s: %v", name, err)
	}
	return client.ConnectionState().PeerCertificates[0]
}

// TestExpiredCertificateIsAskedForByVisitors starts a relay that was off for months while
// its authority is unavailable. The old certificate is shown, and a visitor gets a new
// one soon after the authority is back.
func TestExpiredCertificateIsAskedForByVisitors(t *testing.T) {
	const name = "www.shop.test"
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		before, storage := newStateACME(t, false)
		from := &flaky{authority: newAuthority(t)}
		before.names.Issuers = []certmagic.Issuer{from}
		if err := before.obtain(name); err != nil {
			t.Fatal(err)
		}
		before.Close()
		time.Sleep(100 * 24 * time.Hour)

		cfg := before.cfg
		log := &logged{}
		cfg.Lookup, cfg.Storage, cfg.Log = nowhere, storage, slog.New(slog.NewTextHandler(log, nil))
		a := NewACME(cfg)
		t.Cleanup(a.Close)
		a.names.Issuers = before.names.Issuers
		from.fail(errAway)
		visit := func() *x509.Certificate { return visitor(t, a, name) }
		a.Want(name)
		time.Sleep(74 * time.Hour)
		if cert := visit(); time.Now().Before(cert.NotAfter) {
			t.Fatalf("got a certificate until %v from an authority that is away", cert.NotAfter)
		}
		if log.count("visitors of the name are warned") == 0 || log.count("turned away") > 0 {
			t.Errorf("the log does not say that visitors are warned:\n%s", &log.text)
		}
		if s := a.State(t.Context(), name); s.Err == nil {
			t.Errorf("nobody is told that it cannot be had: %+v", s)
		}
		from.fail(nil)
		time.Sleep(retryMost)
		if cert := visit(); time.Now().After(cert.NotAfter) {
			t.Errorf("an hour after the authority is back, the visitor gets a certificate until %v: now is %v", cert.NotAfter, time.Now())
		}
		if s := a.State(t.Context(), name); s.Err != nil || s.NotAfter.Before(time.Now()) {
			t.Errorf("got %+v", s)
		}
	})
}

// TestFailedRenewalIsTold makes the renewal of a certificate fail, and then succeed.
func TestFailedRenewalIsTold(t *testing.T) {
	const name = "shop.relay.test" // certmagic has pauses of its own for each name, in all of the process
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		a, _ := newStateACME(t, false)
		log := &logged{}
		a.log = slog.New(slog.NewTextHandler(log, nil))
		from := &flaky{authority: newAuthority(t)}
		a.names.Issuers = []certmagic.Issuer{from}
		if err := a.obtain(name); err != nil {
			t.Fatal(err)
		}
		first := a.State(t.Context(), name)
		from.fail(errAway)
		time.Sleep(time.Until(first.NotAfter) - 20*24*time.Hour)
		if s := a.State(t.Context(), name); !errors.Is(s.Err, errAway) || !s.NotAfter.Equal(first.NotAfter) {
			t.Errorf("while the authority is away: got %+v", s)
		}
		if n := log.count("until=" + first.NotAfter.Format("2006-01-02")); n == 0 {
			t.Error("the log does not tell how long the old certificate lasts")
		}
		from.fail(nil)
		time.Sleep(24 * time.Hour)
		if s := a.State(t.Context(), name); s.Err != nil || !s.NotAfter.After(first.NotAfter) {
			t.Errorf("after the authority is back: got %+v", s)
		}
	})
}

// TestCertificateOfAnotherNodeIsShown makes one node fail to get a certificate, and
// another node with the same store get it while the first must not ask.
func TestCertificateOfAnotherNodeIsShown(t *testing.T) {
	const name = "www.shop.test"
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		a, _ := newStateACME(t, false)
		a.cfg.Lookup = nowhere
		from := &flaky{authority: newAuthority(t)}
		from.fail(errAway)
		a.names.Issuers = []certmagic.Issuer{from}
		for pause := time.Minute; pause < retryMost; pause *= 2 {
			a.Want(name)
			time.Sleep(pause)
		}
		a.Want(name)
		time.Sleep(time.Minute)
		other := NewACME(a.cfg)
		t.Cleanup(other.Close)
		other.names.Issuers = a.names.Issuers
		from.fail(nil)
		if err := other.obtain(name); err != nil {
			t.Fatal(err)
		}
		if s := a.State(t.Context(), name); s.Err != nil {
			t.Errorf("the node that failed tells of its failure: %v", s.Err)
		}
		visitor(t, a, name)
		if from.issued != 1 {
			t.Errorf("the authority gave %d certificates, want 1", from.issued)
		}
	})
}

// TestCertificateOfAGoneNameIsNotShown gives a name back, so that a wildcard covers it,
// for longer than its own certificate is valid.
func TestCertificateOfAGoneNameIsNotShown(t *testing.T) {
	const name = "one.all.test"
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		a, _ := newStateACME(t, true)
		a.cfg.Lookup, a.cfg.Subject = nowhere, subjectOf(name)
		from := &flaky{authority: newAuthority(t)}
		a.names.Issuers, a.dns.Issuers = []certmagic.Issuer{from}, []certmagic.Issuer{from}
		visitor(t, a, name)
		a.cfg.Subject = subjectOf("*.all.test")
		a.Want("*.all.test")
		time.Sleep(120 * 24 * time.Hour)
		if cert := visitor(t, a, name); time.Now().After(cert.NotAfter) || cert.DNSNames[0] != "*.all.test" {
			t.Errorf("got a certificate of %v until %v, want the wildcard's", cert.DNSNames, cert.NotAfter)
		}
	})
}

// ahead is an authority whose clock is months ahead of the relay's.
type ahead struct {
	authority
	by time.Duration
}

func (h *ahead) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	h.at = time.Now().Add(-h.by)
	return h.authority.Issue(ctx, csr)
}

// TestVisitorsOfAWrongClockMakeNoOrders sets the relay's clock so far ahead that each new
// certificate has already expired.
func TestVisitorsOfAWrongClockMakeNoOrders(t *testing.T) {
	const name = "www.shop.test"
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		a, _ := newStateACME(t, false)
		a.cfg.Lookup = nowhere
		from := &ahead{authority: newAuthority(t), by: 200 * 24 * time.Hour}
		a.names.Issuers = []certmagic.Issuer{from}
		for range 20 {
			visitor(t, a, name) // whose own clock may be right
		}
		if from.issued != 1 {
			t.Errorf("20 visitors made %d orders", from.issued)
		}
		if s := a.State(t.Context(), name); s.Err == nil || !strings.Contains(s.Err.Error(), "clock") {
			t.Errorf("the clock is not told of: %v", s.Err)
		}
	})
}
