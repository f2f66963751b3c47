// Package certs has the certificates that visitors see: those of an ACME authority
// (ACME), of files (File), and of the relay's own authority (Local), for sites that
// have no other. ACME gets one when a name is claimed or first visited, and again
// before it runs out. What it has is kept in a store that the nodes of a relay
// share, with locks, so that one of them asks. Which names may have one is decided
// above it.
package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"

	"adit/internal/turns"
	"adit/internal/wildcard"
)

// challengeProto is what an authority alone offers for TLS-ALPN-01 (RFC 8737); the
// edge takes it.
const challengeProto = "acme-tls/1"

const (
	obtainFor   = 90 * time.Second // one try for one name
	obtainAtMax = 32               // names at once
	ofOwner     = 8                // of them, of one owner: names of its own may lead nowhere
	retryFirst  = time.Minute      // after a failed try, then twice as long each time
	retryMost   = time.Hour
	loadEvery   = 10 * time.Second // what another node may have got, while it is too early to ask
	maxFailures = 10_000           // names that are remembered
)

// DNSProvider changes the records of challenges.
type DNSProvider = certmagic.DNSProvider

// Config is what the certificates are got with. Domain, Storage and Subject are
// required.
type Config struct {
	Domain    string
	Email     string         // of the account; may be empty
	Directory string         // URL; if empty, Let's Encrypt's
	Roots     *x509.CertPool // to trust the directory by; nil: the system's
	// HTTP01 and TLSALPN01 are the challenges for single names. Without both,
	// DNS is for all.
	HTTP01, TLSALPN01 bool
	// DNS changes records for DNS-01. Nil: there is no DNS-01.
	DNS DNSProvider
	// Resolvers are asked whether a record is there; empty: the system's.
	Resolvers []string
	// Wildcard asks for one certificate for all names one label under Domain; it
	// needs DNS.
	Wildcard bool
	// HTTP and HTTPS are where the edge listens.
	HTTP, HTTPS netip.AddrPort
	Storage     certmagic.Storage
	// Subject is what a name's certificate is for: the name itself, or the wildcard
	// that it is one of; a wildcard's is itself. Empty: the name may have none.
	Subject func(name string) string
	// Owner is whose a subject is. If nil, all are of one.
	Owner func(subject string) string
	// Wait is how long a handshake waits for a certificate. If zero, 8 s.
	Wait time.Duration
	Log  *slog.Logger // may be nil
	// Retry is the pause after a first failed try. If zero, a minute.
	Retry time.Duration
	// Lookup finds the addresses of a name. If nil, the system's resolver is asked.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	// Check is how often to look for what must be renewed. If zero, 10 minutes.
	Check time.Duration
	// RenewAt is the share of its life left at which a certificate is renewed. If
	// zero, a third, or when the authority suggests it.
	RenewAt float64
}

// Errors of a handshake.
var (
	errNoSite = errors.New("there is no site of this name")
	errNotYet = errors.New("the certificate of this name is still being asked for")
	errClosed = errors.New("the relay is shutting down")
)

// ACME gets, keeps and renews certificates. It must be closed.
type ACME struct {
	cfg    Config
	log    *slog.Logger
	cache  *certmagic.Cache
	names  *certmagic.Config          // for single names; nil if DNS is for all
	http   *certmagic.ACMEIssuer      // answers HTTP-01; nil without
	dns    *certmagic.Config          // nil without DNS-01
	get    func(subject string) error // obtain; tests have it fail
	turns  *turns.Turns               // of names
	life   context.Context
	end    context.CancelFunc
	trying sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	tries    map[string]*try     // under way, by subject
	failures map[string]*failure // by subject
	renewals map[string]trouble  // that failed, by subject
}

// try is one try to get a certificate; err is set when done is closed.
type try struct {
	done chan struct{}
	err  error
}

type failure struct {
	err   error
	pause time.Duration
	until time.Time
	from  *place    // where the name led; nil: not known
	look  time.Time // when it may be looked whether it leads elsewhere
	early int       // tries before their time that failed, too; see lookAfter
	load  time.Time // when it may be looked whether another node has a certificate
}

// NewACME returns certificates of an ACME authority. It asks it for nothing yet.
func NewACME(cfg Config) *ACME {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Wait == 0 {
		cfg.Wait = 8 * time.Second
	}
	if cfg.Retry == 0 {
		cfg.Retry = retryFirst
	}
	if cfg.Directory == "" {
		cfg.Directory = certmagic.LetsEncryptProductionCA
	}
	if cfg.Owner == nil {
		cfg.Owner = func(string) string { return "" }
	}
	a := &ACME{
		cfg: cfg, log: cfg.Log, turns: turns.New(obtainAtMax, ofOwner),
		tries: make(map[string]*try), failures: make(map[string]*failure), renewals: make(map[string]trouble),
	}
	if a.cfg.Lookup == nil {
		a.cfg.Lookup = net.DefaultResolver.LookupNetIP
	}
	a.get = a.obtain
	a.life, a.end = context.WithCancel(context.Background())
	logger := zap.New(&zapCore{log: cfg.Log})
	a.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert:   func(c certmagic.Certificate) (*certmagic.Config, error) { return a.configOf(c.Names[0]), nil },
		RenewCheckInterval: cfg.Check,
		Capacity:           10_000,
		Logger:             logger,
	})
	if cfg.HTTP01 || cfg.TLSALPN01 {
		var issuer *certmagic.ACMEIssuer
		a.names, issuer = a.config(logger, false)
		if cfg.HTTP01 {
			a.http = issuer
		}
	}
	if cfg.DNS != nil {
		a.dns, _ = a.config(logger, true)
	}
	return a
}

func (a *ACME) config(logger *zap.Logger, dns bool) (*certmagic.Config, *certmagic.ACMEIssuer) {
	c := certmagic.New(a.cache, certmagic.Config{
		Storage:             a.cfg.Storage,
		RenewalWindowRatio:  a.cfg.RenewAt,
		DisableARI:          a.cfg.RenewAt != 0,
		DisableStorageCheck: true, // the relay could not have started without its store
		// A name and its key are of one certificate: nothing is gained by stapling
		// for authorities that no longer answer OCSP.
		OCSP:    certmagic.OCSPConfig{DisableStapling: true},
		OnEvent: a.event,
		Logger:  logger,
	})
	template := certmagic.ACMEIssuer{
		CA: a.cfg.Directory, TestCA: a.cfg.Directory, Email: a.cfg.Email, Agreed: true, TrustedRoots: a.cfg.Roots,
		DisableHTTPChallenge: dns || !a.cfg.HTTP01, DisableTLSALPNChallenge: dns || !a.cfg.TLSALPN01,
		// The edge listens there already; certmagic sees that and opens nothing.
		ListenHost: host(a.cfg.HTTP), AltHTTPPort: int(a.cfg.HTTP.Port()), AltTLSALPNPort: int(a.cfg.HTTPS.Port()),
		CertObtainTimeout: obtainFor, Logger: logger,
	}
	if dns {
		template.DNS01Solver = &certmagic.DNS01Solver{DNSManager: certmagic.DNSManager{
			DNSProvider: a.cfg.DNS, Resolvers: a.cfg.Resolvers, PropagationTimeout: obtainFor - 10*time.Second, Logger: logger,
		}}
	}
	issuer := certmagic.NewACMEIssuer(c, template)
	c.Issuers = []certmagic.Issuer{once{issuer, a.cfg.Storage, a.log}}
	return c, issuer
}

func host(a netip.AddrPort) string {
	if !a.IsValid() || a.Addr().IsUnspecified() {
		return ""
	}
	return a.Addr().String()
}

// configOf returns what gets the certificate of a subject.
func (a *ACME) configOf(subject string) *certmagic.Config {
	if a.names == nil || a.dns != nil && strings.HasPrefix(subject, "*.") {
		return a.dns
	}
	return a.names
}

// Wildcards reports whether certificates of wildcards can be had.
func (a *ACME) Wildcards() bool { return a.dns != nil }

// subject is what a name's certificate is issued for. ok is false if the name
// may have none.
func (a *ACME) subject(name string) (subject string, ok bool) {
	if a.cfg.Wildcard {
		if label, under := strings.CutSuffix(name, "."+a.cfg.Domain); under && label != "" && !strings.Contains(label, ".") {
			return "*." + a.cfg.Domain, true
		}
	}
	subject = a.cfg.Subject(name)
	return subject, subject != "" && (a.Wildcards() || !wildcard.Is(subject))
}

// wanted reports whether a subject may have a certificate.
func (a *ACME) wanted(subject string) bool {
	return a.cfg.Wildcard && subject == "*."+a.cfg.Domain || subject != "" && a.cfg.Subject(subject) == subject
}

// event is told by certmagic what it does; an error to cert_obtaining stops it.
func (a *ACME) event(_ context.Context, kind string, data map[string]any) error {
	subject, _ := data["identifier"].(string)
	renewal, _ := data["renewal"].(bool)
	switch kind {
	case "cert_obtaining":
		if !a.wanted(subject) {
			a.cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: subject}}) // the store keeps it
			return certmagic.ErrNoRetry{Err: errNoSite}
		}
	case "cert_obtained":
		a.log.Info("certificate obtained", "name", subject, "renewal", renewal)
	case "cert_failed":
		left, _ := data["remaining"].(time.Duration)
		if err, _ := data["error"].(error); renewal && !errors.Is(err, errNoSite) {
			a.notRenewed(subject, err, time.Now().Add(left))
		}
	}
	return nil
}

// Want starts to get the certificate of a name, so that its first visitor does
// not wait.
func (a *ACME) Want(name string) {
	if subject, ok := a.subject(name); ok {
		a.try(subject)
	}
}

// HandleHTTP answers an HTTP-01 challenge that some node has under way, else
// returns false.
func (a *ACME) HandleHTTP(w http.ResponseWriter, r *http.Request) bool {
	return a.http != nil && certmagic.LooksLikeHTTPChallenge(r) && a.http.HandleHTTPChallenge(w, r)
}

// nameOf is the name that a handshake asks for, in lower case.
func nameOf(hello *tls.ClientHelloInfo) string {
	return strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
}

// Get returns the certificate for a handshake; nil: there is no site of the name, as
// crypto/tls tells the visitor then (RFC 6066, section 3). If there is none yet, it waits
// for it as long as Config.Wait.
func (a *ACME) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if len(hello.SupportedProtos) == 1 && hello.SupportedProtos[0] == challengeProto {
		if a.names == nil || !a.cfg.TLSALPN01 {
			return nil, nil
		}
		return a.names.GetCertificate(hello)
	}
	name := nameOf(hello)
	subject, ok := a.subject(name)
	if name == "" || net.ParseIP(name) != nil || !ok {
		return nil, nil
	}
	config := a.configOf(subject)
	if cert, err := config.GetCertificate(hello); err == nil && (cert.Leaf == nil || time.Now().Before(cert.Leaf.NotAfter)) {
		return cert, nil
	}
	cert, err := a.await(hello, config, a.try(subject))
	if err != nil {
		if old, none := config.GetCertificate(hello); none == nil {
			return old, nil // a visitor is warned of it, and may go on
		}
	}
	return cert, err
}

// await returns the certificate that a try brings within Config.Wait.
func (a *ACME) await(hello *tls.ClientHelloInfo, config *certmagic.Config, t *try) (*tls.Certificate, error) {
	limit := time.NewTimer(a.cfg.Wait)
	defer limit.Stop()
	select {
	case <-t.done:
		if t.err != nil {
			return nil, t.err
		}
		return config.GetCertificate(hello)
	case <-limit.C:
		return nil, errNotYet
	case <-hello.Context().Done():
		return nil, hello.Context().Err()
	}
}

// try returns the try under way for a subject, a new one, or the last one that
// failed if it is too early for another.
func (a *ACME) try(subject string) *try {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t := a.tries[subject]; t != nil {
		return t
	}
	t := &try{done: make(chan struct{})}
	f, now := a.failures[subject], time.Now()
	early := f != nil && now.Before(f.until)
	look := early && f.from != nil && !now.Before(f.look)
	if a.closed || early && !look && now.Before(f.load) {
		t.err = errClosed
		if !a.closed {
			t.err = f.err
		}
		close(t.done)
		return t
	}
	if look {
		f.look = now.Add(a.cfg.Retry)
	}
	if early {
		f.load = now.Add(loadEvery)
	}
	a.tries[subject] = t
	a.trying.Go(func() {
		switch {
		case early && a.load(subject):
		case early && !(look && a.place(subject).elsewhere(f.from)):
			t.err = f.err
			a.forget(subject)
			close(t.done)
			return
		default:
			t.err = a.get(subject)
		}
		failed := a.finish(subject, early, t.err)
		close(t.done)
		if failed != nil {
			a.settle(subject, failed) // nobody need wait for that
		}
	})
	return t
}

// forget ends a try that was none.
func (a *ACME) forget(subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tries, subject)
}

// finish ends a try, one before its time perhaps, and returns what is remembered if it
// failed.
func (a *ACME) finish(subject string, early bool, err error) *failure {
	a.mu.Lock()
	delete(a.tries, subject)
	if err == nil || errors.Is(err, errNoSite) || a.life.Err() != nil {
		delete(a.failures, subject)
		a.mu.Unlock()
		return nil
	}
	pause, earlier := a.cfg.Retry, 0
	if f := a.failures[subject]; f != nil {
		pause = min(2*f.pause, retryMost)
		if earlier = max(0, f.early-1); early {
			earlier = f.early + 1
		}
	}
	if len(a.failures) >= maxFailures {
		clear(a.failures)
	}
	now := time.Now()
	f := &failure{err: err, pause: pause, until: now.Add(pause), early: earlier, look: now.Add(max(a.cfg.Retry, lookAfter(pause, earlier))), load: now.Add(loadEvery)}
	a.failures[subject] = f
	a.mu.Unlock()
	log := a.log.With("name", subject, "error", err, "not_before", pause.String())
	if a.shown(subject) != nil {
		log.Warn("the certificate has run out and is not renewed yet, visitors of the name are warned")
	} else {
		log.Warn("no certificate, visitors of the name are turned away")
	}
	return f
}

// obtain puts the certificate of a subject into the cache: from the store, or
// asked for.
func (a *ACME) obtain(subject string) error {
	return a.turns.Take(a.life, a.cfg.Owner(subject), func() error {
		ctx, cancel := context.WithTimeout(a.life, obtainFor) // waiting for its turn is no part of it
		defer cancel()
		return a.obtainNow(ctx, subject)
	})
}

func (a *ACME) obtainNow(ctx context.Context, subject string) error {
	config := a.configOf(subject)
	cert, err := config.CacheManagedCertificate(ctx, subject)
	switch {
	case err == nil && !cert.Expired():
		return nil
	case err == nil:
		err = config.RenewCertAsync(ctx, subject, false)
	case errors.Is(err, fs.ErrNotExist):
		err = config.ObtainCertAsync(ctx, subject)
	default:
		if err = a.dropDamaged(ctx, config.Issuers[0].IssuerKey(), subject); err == nil {
			err = config.ObtainCertAsync(ctx, subject)
		}
	}
	if err == nil {
		cert, err = config.CacheManagedCertificate(ctx, subject)
	}
	if err == nil && cert.Expired() { // and each visitor would make another order
		err = fmt.Errorf("the one that came ran out at %s: is this machine's clock right?", cert.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if err != nil {
		return fmt.Errorf("get certificate of %s from %s: %w", subject, a.cfg.Directory, err)
	}
	return nil
}

// load puts the certificate of a subject into the cache that another node has stored,
// and reports whether it is of use.
func (a *ACME) load(subject string) bool {
	ctx, cancel := context.WithTimeout(a.life, obtainFor)
	defer cancel()
	leaf, err := a.stored(ctx, subject)
	if err != nil || time.Now().After(leaf.NotAfter) {
		return false
	}
	_, err = a.configOf(subject).CacheManagedCertificate(ctx, subject)
	return err == nil
}

// Close ends what is under way.
func (a *ACME) Close() {
	a.mu.Lock()
	was := a.closed
	a.closed = true
	a.mu.Unlock()
	if was {
		return
	}
	a.end()
	a.trying.Wait()
	a.cache.Stop()
}
