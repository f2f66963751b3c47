package certs

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"log/slog"
	"path"
	"strings"
	"time"

	"github.com/caddyserver/certmagic"
)

const (
	// issueFor is how long issuing one certificate may take. Certmagic has no limit for
	// renewals, and if hundreds are due at the same time, they wait for their turn within
	// it.
	issueFor = 30 * time.Minute
	maxError = 1000 // limit in bytes on an authority's answer in errors, since it may be a page
)

// once is an issuer that prevents certmagic from asking again in the middle of an
// attempt; attempts here have pauses of their own. It asks a second time only if the
// account was at fault and has been replaced. Certmagic creates a new account if the
// authority no longer knows the old one, but goes on with the old one. It creates none
// for an account that is damaged in the store.
type once struct {
	*certmagic.ACMEIssuer
	storage certmagic.Storage
	log     *slog.Logger
}

func (o once) Issue(ctx context.Context, csr *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	ctx, cancel := context.WithTimeout(ctx, issueFor)
	defer cancel()
	before := o.accounts(ctx)
	cert, err := o.ACMEIssuer.Issue(ctx, csr)
	if err != nil && len(before) > 0 && o.replaced(ctx, before) {
		cert, err = o.ACMEIssuer.Issue(ctx, csr)
	}
	if err != nil {
		return nil, certmagic.ErrNoRetry{Err: brief(err)}
	}
	return cert, nil
}

// brief shortens the text of an error, if that is long.
func brief(err error) error {
	text := err.Error()
	if len(text) <= maxError {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxError], "") + "…")
}

// accounts returns the stored accounts with the authority, by folder. Usually there is
// one. Those that cannot be read are left out.
func (o once) accounts(ctx context.Context) map[string]account {
	list := make(map[string]account)
	keys, err := o.storage.List(ctx, path.Join("acme", certmagic.StorageKeys.Safe(o.IssuerKey()), "users"), true)
	if err != nil {
		return nil
	}
	for _, key := range keys {
		data, err := o.storage.Load(ctx, key)
		if err != nil {
			continue
		}
		a := list[path.Dir(key)]
		if strings.HasSuffix(key, ".key") {
			a.key = data
		} else {
			a.about = data
		}
		list[path.Dir(key)] = a
	}
	return list
}

// account is an account as stored. A part that is missing is nil.
type account struct{ about, key []byte }

// damage returns why an account cannot be used, if it is complete.
func (a account) damage() error {
	if a.about == nil || a.key == nil {
		return nil // certmagic creates another
	}
	if _, err := certmagic.PEMDecodePrivateKey(a.key); err != nil {
		return err
	}
	return json.Unmarshal(a.about, new(map[string]any))
}

// replaced reports whether the accounts differ from before. It removes damaged ones, so
// that new ones are created.
func (o once) replaced(ctx context.Context, before map[string]account) bool {
	now, replaced := o.accounts(ctx), false
	for folder, old := range before {
		a := now[folder]
		if !bytes.Equal(a.about, old.about) || !bytes.Equal(a.key, old.key) {
			replaced = true
		} else if damage := a.damage(); damage != nil {
			o.log.Warn("the account at the certificate authority is damaged in the store, another is made", "account", path.Base(folder), "error", damage)
			replaced = o.storage.Delete(ctx, folder) == nil || replaced
		}
	}
	return replaced
}
