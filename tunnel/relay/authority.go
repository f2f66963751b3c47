package relay

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/certs"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/relay/store"
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
	_, err = r.linkCertificate()
	return err
}

// linkCertificate is what agents are shown; it is issued anew every day.
func (r *Relay) linkCertificate() (*tls.Certificate, error) {
	r.certMu.Lock()
	defer r.certMu.Unlock()
	if now := time.Now(); now.Sub(r.certAge) > linkCertLife {
		cert, err := r.authority.Issue(r.publicHost())
		if err != nil {
			return nil, err
		}
		r.cert, r.certAge = cert, now
	}
	cert := r.cert
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
	if r.local, err = certs.NewLocal(ca, r.subject); err != nil {
		return nil, err
	}
	if err := os.WriteFile(r.CAFile(), r.local.CA(), 0o644); err != nil {
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
	if fault := r.file.Fault(r.cfg.Domain, r.acme != nil, time.Now()); fault != "" {
		r.log.Warn("browsers do not take the certificate of tls_cert", "reason", fault, "file", r.cfg.TLSCert)
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
	c.Domain, c.Storage, c.Subject, c.Log = r.cfg.Domain, r.store.Certificates, r.subject, r.log
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
