package certs

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

// slow is an authority that takes its time for each certificate.
type slow struct {
	authority
	takes time.Duration

	mu sync.Mutex
}

func (s *slow) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.authority.Issue(ctx, csr)
}

// deaf is an authority that does not answer for some names.
type deaf struct {
	authority
	to string // what they begin with
}

func (d *deaf) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	if strings.HasPrefix(csr.DNSNames[0], d.to) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.authority.Issue(ctx, csr)
}

// nowhere is where every name leads.
func nowhere(context.Context, string, string) ([]netip.Addr, error) { return nil, nil }

// TestManyNamesAtOnceWaitForTheirTurn has the tunnels of 48 names start together,
// as after a move without the certificates.
func TestManyNamesAtOnceWaitForTheirTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		var names []string
		for i := range 48 {
			names = append(names, fmt.Sprintf("shop%d.test", i))
		}
		log := &logged{}
		a := NewACME(Config{
			Domain: "relay.test", Directory: "https://acme.test/dir", HTTP01: true,
			Storage: &certmagic.FileStorage{Path: t.TempDir()}, Subject: subjectOf(names...),
			Lookup: nowhere, Log: slog.New(slog.NewTextHandler(log, nil)),
		})
		t.Cleanup(a.Close)
		from := &slow{authority: newAuthority(t), takes: 40 * time.Second}
		a.names.Issuers = []certmagic.Issuer{from}
		for _, name := range names {
			a.Want(name)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		without := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return a.shown(name) != nil })
		if len(without) > 0 || log.count("turned away") > 0 {
			t.Errorf("%d of %d names have no certificate; %d warnings", len(without), len(names), log.count("turned away"))
		}
	})
}

// TestNamesOfOneClientKeepNoOthersWaiting has a client with a great many names that no
// authority can reach, each of which takes as long as a try may.
func TestNamesOfOneClientKeepNoOthersWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		names := []string{"mine.test"}
		for i := range 1000 {
			names = append(names, fmt.Sprintf("shop%d.test", i))
		}
		a := NewACME(Config{
			Domain: "relay.test", Directory: "https://acme.test/dir", HTTP01: true,
			Storage: &certmagic.FileStorage{Path: t.TempDir()}, Subject: subjectOf(names...), Lookup: nowhere,
			Owner: func(subject string) string {
				return strings.TrimRight(strings.TrimSuffix(subject, ".test"), "0123456789")
			},
		})
		defer a.Close()
		a.names.Issuers = []certmagic.Issuer{&deaf{authority: newAuthority(t), to: "shop"}}
		for _, name := range names[1:] {
			a.Want(name)
		}
		synctest.Wait()
		a.Want("mine.test")
		time.Sleep(time.Minute)
		synctest.Wait()
		if a.shown("mine.test") == nil {
			t.Error("a client's only name waits for a thousand of another's")
		}
	})
}

// TestNameThatIsGoneIsNoFailure has a name given back while it waits for its turn,
// and taken again.
func TestNameThatIsGoneIsNoFailure(t *testing.T) {
	a, _ := newStateACME(t, false)
	log := &logged{}
	a.log, a.cfg.Lookup = slog.New(slog.NewTextHandler(log, nil)), nowhere
	from := newAuthority(t)
	a.names.Issuers = []certmagic.Issuer{&from}
	const name = "gone.test"
	<-a.try(name).done
	if log.count("turned away") > 0 {
		t.Error("it is told of a name that is nobody's that it has no certificate")
	}
	a.cfg.Subject = subjectOf(name)
	a.Want(name)
	a.trying.Wait()
	if from.issued != 1 {
		t.Errorf("taken again, it has %d certificates: %v", from.issued, a.State(t.Context(), name).Err)
	}
}
