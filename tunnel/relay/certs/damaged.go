package certs

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"path"

	"github.com/caddyserver/certmagic"
)

// dropDamaged removes what the store has of a subject if all of it is there and
// is no certificate with its key: certmagic would neither use it nor ask for
// another in its place.
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
	if damage == nil { // another node was storing it a moment ago
		return nil
	}
	a.log.Warn("a certificate in the store is damaged, another is asked for", "name", subject, "error", damage)
	return a.cfg.Storage.Delete(ctx, path.Dir(certmagic.StorageKeys.SiteCert(issuer, subject)))
}

// damage is why what the store has of a subject cannot be used; nil where it can,
// or is not there, or was not read.
func (a *ACME) damage(ctx context.Context, issuer, subject string) error {
	var parts [3][]byte
	for i, key := range []string{
		certmagic.StorageKeys.SiteCert(issuer, subject),
		certmagic.StorageKeys.SitePrivateKey(issuer, subject),
		certmagic.StorageKeys.SiteMeta(issuer, subject),
	} {
		var err error
		if parts[i], err = a.cfg.Storage.Load(ctx, key); err != nil {
			return nil // nothing is known of it
		}
	}
	if _, err := tls.X509KeyPair(parts[0], parts[1]); err != nil {
		return err
	}
	return json.Unmarshal(parts[2], new(certmagic.CertificateResource))
}

// issueLock is certmagic's own, in which a new certificate is stored.
func issueLock(subject string) string { return "issue_cert_" + subject }
