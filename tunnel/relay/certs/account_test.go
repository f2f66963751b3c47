package certs

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

// TestAuthorityThatAnswersWithAPageIsToldInBrief answers with an authority's maintenance
// page instead of its directory.
func TestAuthorityThatAnswersWithAPageIsToldInBrief(t *testing.T) {
	page := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, "<html>"+strings.Repeat("<p>维护</p>", 10_000))
	}))
	defer page.Close()
	storage := &certmagic.FileStorage{Path: t.TempDir()}
	log := &logged{}
	cfg := Config{
		Domain: "relay.test", Directory: page.URL + "/dir", Roots: x509.NewCertPool(), HTTP01: true, Storage: storage,
		Subject: subjectOf("www.shop.test"), Lookup: nowhere, Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	cfg.Roots.AddCert(page.Certificate())
	a := NewACME(cfg)
	t.Cleanup(a.Close)
	<-a.try("www.shop.test").done
	said := a.State(t.Context(), "www.shop.test").Err.Error()
	if !strings.Contains(said, "HTTP 503") || len(said) > 2*maxError || len(log.text.String()) > 4*maxError {
		t.Errorf("%d bytes are told, %d are logged: %.200s", len(said), len(log.text.String()), said)
	}
}

// stuck is a store that never answers.
type stuck struct{ certmagic.Storage }

func (stuck) List(ctx context.Context, _ string, _ bool) ([]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRenewalThatIsStuckEnds makes a renewal, for which certmagic has no time limit, go
// unanswered.
func TestRenewalThatIsStuckEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer time.Sleep(time.Minute) // a lock of the store has a goroutine for a while
		a, _ := newStateACME(t, false)
		o, ok := a.names.Issuers[0].(once)
		if !ok {
			t.Fatalf("the issuer is %T", a.names.Issuers[0])
		}
		o.storage = stuck{a.cfg.Storage}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		csr := &x509.CertificateRequest{DNSNames: []string{"www.shop.test"}}
		if _, err := o.Issue(ctx, csr); !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("got %v after a day", err)
		}
	})
}
