package certs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"path"

	"github.com/caddyserver/certmagic"
)

// dropDamaged removes what is stored for a subject if it is complete but is not a
// certificate with its key. Certmagic would neither use it nor request another in its
// place.
func (a *ACME) dropDamaged(ctx context.Context, issuer, subject string) (err error) {
	if a.damage(ctx, issuer, subject) == nil {
		return nil
	}
	lock := issueLock(subject)
	if err := a.cfg.Storage.Lock(ctx, lock); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.cfg.Storage.Unlock(context.WithoutCancel(ctx), lock)) }()
	damage := a.damage(ctx, issuer, subject)
	if damage == nil { // another node was just storing it
		return nil
	}
	a.log.Warn("a certificate in the store is damaged, another is asked for", "name", subject, "error", damage)
	return a.cfg.Storage.Delete(ctx, path.Dir(certmagic.StorageKeys.SiteCert(issuer, subject)))
}

// damage returns why what is stored for a subject cannot be used. It returns nil if it
// can be used, is not there, or could not be read.
func (a *ACME) damage(ctx context.Context, issuer, subject string) error {
	var parts [3][]byte
	for i, key := range []string{
		certmagic.StorageKeys.SiteCert(issuer, subject),
		certmagic.StorageKeys.SitePrivateKey(issuer, subject),
		certmagic.StorageKeys.SiteMeta(issuer, subject),
	} {
		var err error
		if parts[i], err = a.cfg.Storage.Load(ctx, key); err != nil {
			return nil // nothing is known about it
		}
	}
	if _, err := tls.X509KeyPair(parts[0], parts[1]); err != nil {
		return err
	}
	return json.Unmarshal(parts[2], new(certmagic.CertificateResource))
}

// issueLock is the name of certmagic's own lock, under which it stores a new certificate.
func issueLock(subject string) string { return "issue_cert_" + subject }
