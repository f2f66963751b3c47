package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"adit/internal/atomicfile"
	"adit/internal/wildcard"
	"adit/tunnel/link"
	"adit/tunnel/relay/certs"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

func (r *Relay) openAuthority(ctx context.Context) error {
	text, err := r.store.Settings.Once(ctx, store.SettingAuthority, func() ([]byte, error) {
		a, err := link.NewAuthority()
		if err != nil {
			return nil, err
		}
		return a.MarshalPEM()
	})
	if err != nil {
		return err
	}
	if r.authority, err = link.ParseAuthority(text); err != nil {
		return fmt.Errorf("read the relay's authority from the store: %w", err)
	}
	r.shown.issue = func() (tls.Certificate, error) { return r.authority.Issue(r.publicHost()) }
	_, err = r.shown.get()
	return err
}

// daily is a certificate that is issued anew every day.
type daily struct {
	issue func() (tls.Certificate, error)

	mu   sync.Mutex
	cert tls.Certificate
	at   time.Time
}

func (d *daily) get() (*tls.Certificate, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if now := time.Now(); now.Sub(d.at) > 24*time.Hour {
		cert, err := d.issue()
		if err != nil {
			return nil, err
		}
		d.cert, d.at = cert, now
	}
	cert := d.cert
	return &cert, nil
}

func (r *Relay) publicHost() string {
	if r.cfg.PublicHost != "" {
		return r.cfg.PublicHost
	}
	return r.cfg.Domain
}

// tunnelAddr is where agents find the relay.
func (r *Relay) tunnelAddr() string {
	return net.JoinHostPort(r.publicHost(), strconv.Itoa(publicPort(r.cfg.PublicTunnelPort, r.listener.Addr())))
}

func (r *Relay) openCertificates(ctx context.Context, plain, secure net.Addr) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	ca, err := r.store.Settings.Once(ctx, store.SettingVisitorCA, func() ([]byte, error) { return certs.NewLocalAuthority(r.cfg.Domain) })
	if err != nil {
		return nil, err
	}
	if r.local, err = certs.NewLocal(ca, r.names.Subject); err != nil {
		return nil, err
	}
	if err := atomicfile.Write(r.CAFile(), r.local.CA(), 0o644); err != nil {
		return nil, fmt.Errorf("write the visitors' authority: %w", err)
	}
	get := r.local.Get
	if err := r.openACME(plain, secure); err != nil {
		return nil, err
	}
	if r.acme != nil {
		get = r.acme.Get
	}
	if r.cfg.TLSCert == "" {
		return get, nil
	}
	if r.file, err = certs.NewFile(r.cfg.TLSCert, r.cfg.TLSKey, get); err != nil {
		return nil, r.cfg.CertificateError(err)
	}
	return r.file.Get, nil
}

// openACME sets up the certificates of an authority, if it is configured. The
// edge's listeners are open.
func (r *Relay) openACME(plain, secure net.Addr) error {
	if r.cfg.ACME == nil {
		return nil
	}
	c, err := r.cfg.ACME.Certs(r.log)
	if err != nil {
		return err
	}
	c.Domain, c.Storage, c.Subject, c.Log = r.cfg.Domain, r.store.Certificates, r.names.Subject, r.log
	c.Owner = func(subject string) string {
		claim, _ := r.store.Claims.Get(claims.TargetDomain(subject))
		return claim.ClientID
	}
	c.Wait = r.cfg.Limits.Edge().HeaderTime * 3 / 4 // what is left is for the handshake itself
	c.HTTP, _ = netip.ParseAddrPort(plain.String())
	c.HTTPS, _ = netip.ParseAddrPort(secure.String())
	if r.opts.certs != nil {
		r.opts.certs(&c)
	}
	r.acme = certs.NewACME(c)
	return nil
}

// CAFile is the certificate that visitors must trust where the relay has no
// public one.
func (r *Relay) CAFile() string { return filepath.Join(r.cfg.DataDir, datadir.CAFile) }

// certifiable reports why visitors of a tunnel could not be shown a certificate.
func (r *Relay) certifiable(tunnelType, name string) error {
	if tunnelType != wire.TypeHTTPS || !wildcard.Is(name) || r.acme == nil || r.acme.Wildcards() || r.file != nil && r.file.Covers(name) != nil {
		return nil
	}
	return wire.Forbidden("domain", "the relay gets no certificate for %s: authorities give those for dns-01 only, which it is not set up for; choose the type http or tls, or ask its operator", name)
}

// certificateOf is what visitors of a name are shown, by whoever shows it.
func (r *Relay) certificateOf(ctx context.Context, name string) *console.Certificate {
	if r.file != nil {
		if leaf := r.file.Covers(name); leaf != nil {
			return shownCertificate(console.CertificateFile, leaf)
		}
	}
	if r.acme == nil {
		if leaf := r.local.Leaf(name); leaf != nil {
			return shownCertificate(console.CertificateLocal, leaf)
		}
		return &console.Certificate{Source: console.CertificateLocal}
	}
	s := r.acme.State(ctx, name)
	c := &console.Certificate{Source: console.CertificateACME, Issuer: s.Issuer, Trying: s.Trying}
	if !s.NotAfter.IsZero() {
		c.NotAfter = &s.NotAfter
	}
	if s.Err != nil {
		c.Error = s.Err.Error()
	}
	return c
}

// certificatesEnd is when the public certificate ends, of those that this node shows,
// that ends first, by where it comes from. A source that has none is missing.
func (r *Relay) certificatesEnd() map[string]time.Time {
	ends := make(map[string]time.Time)
	if r.file != nil {
		ends[console.CertificateFile] = r.file.Until()
	}
	if r.acme == nil {
		return ends
	}
	for _, c := range r.store.Claims.All() {
		name := claims.DomainOf(c.Target)
		if name == "" || r.file != nil && r.file.Covers(name) != nil {
			continue
		}
		first, known := ends[console.CertificateACME]
		if until, ok := r.acme.Until(name); ok && (!known || until.Before(first)) {
			ends[console.CertificateACME] = until
		}
	}
	return ends
}

func shownCertificate(source string, leaf *x509.Certificate) *console.Certificate {
	until := leaf.NotAfter.UTC()
	issuer := leaf.Issuer.CommonName
	if len(leaf.Issuer.Organization) > 0 {
		issuer = leaf.Issuer.Organization[0]
	}
	return &console.Certificate{Source: source, Issuer: issuer, NotAfter: &until}
}
