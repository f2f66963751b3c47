package certs

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
)

const (
	cleanFirst = 10 * time.Minute // after the start
	cleanEvery = 24 * time.Hour
	// keepExpired is how long to keep an expired certificate whose name belongs to
	// nobody.
	keepExpired = 30 * 24 * time.Hour
)

// Run removes, once a day until ctx ends, what is stored for names that no longer belong
// to anybody.
func (a *ACME) Run(ctx context.Context) {
	for wait := cleanFirst; ; wait = cleanEvery {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		removed, err := a.clean(ctx)
		if removed > 0 {
			a.log.Info("old certificates removed, their names are nobody's", "count", removed)
		}
		if err != nil && ctx.Err() == nil {
			a.log.Warn("old certificates are not removed yet", "error", err)
		}
	}
}

// clean removes the certificates and keys of names that belong to nobody, if they expired
// long ago, and returns how many. A name that was given back and is taken again finds
// what it had.
func (a *ACME) clean(ctx context.Context) (removed int, err error) {
	issuers, err := a.below(ctx, path.Dir(certmagic.StorageKeys.CertsPrefix("any")))
	if err != nil {
		return 0, err
	}
	for _, issuer := range issuers {
		sites, err := a.below(ctx, issuer)
		if err != nil {
			return removed, err
		}
		for _, site := range sites {
			subject := strings.Replace(path.Base(site), "wildcard_", "*", 1) // reverses certmagic's spelling
			if a.wanted(subject) {
				continue
			}
			gone, err := a.remove(ctx, site, subject)
			if err != nil {
				return removed, fmt.Errorf("remove the certificate of %s: %w", subject, err)
			}
			if gone {
				removed++
			}
		}
	}
	return removed, nil
}

func (a *ACME) below(ctx context.Context, key string) ([]string, error) {
	list, err := a.cfg.Storage.List(ctx, key, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// remove removes everything stored for a subject, unless its certificate may still be
// useful.
func (a *ACME) remove(ctx context.Context, site, subject string) (gone bool, err error) {
	if old, err := a.expired(ctx, site); !old || err != nil {
		return false, err
	}
	lock := issueLock(subject)
	if err := a.cfg.Storage.Lock(ctx, lock); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, a.cfg.Storage.Unlock(context.WithoutCancel(ctx), lock)) }()
	if old, err := a.expired(ctx, site); !old || err != nil || a.wanted(subject) { // this may have changed in the meantime
		return false, err
	}
	a.cache.RemoveManaged([]certmagic.SubjectIssuer{{Subject: subject}})
	return true, a.cfg.Storage.Delete(ctx, site)
}

// expired reports whether a site's certificate expired long ago, or is missing, for
// example because its removal was interrupted.
func (a *ACME) expired(ctx context.Context, site string) (bool, error) {
	data, err := a.cfg.Storage.Load(ctx, path.Join(site, path.Base(site)+".crt"))
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return true, nil // nobody can use it
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	return err != nil || time.Since(leaf.NotAfter) > keepExpired, nil
}
