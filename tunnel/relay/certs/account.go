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
	// issueFor is how long one certificate may take: certmagic has no limit for a
	// renewal, and has hundreds that are due together wait for their turn in it.
	issueFor = 30 * time.Minute
	maxError = 1000 // bytes that are told of an authority's answer, which may be a page
)

// once is an issuer that is not asked again by certmagic, which would do so in
// the middle of a try; the tries here have pauses of their own. It is asked a second
// time only if the account was at fault and has been replaced: certmagic makes a new one
// where the authority knows it no more, but goes on with the old, and none for one that is
// damaged in the store.
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

// brief is an error with the beginning of its text, if that is long.
func brief(err error) error {
	text := err.Error()
	if len(text) <= maxError {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxError], "") + "…")
}

// accounts has what the store has of the authority's accounts, by folder: mostly one.
// What cannot be read is left out.
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

// account is what the store has of one; nil: that is not there.
type account struct{ about, key []byte }

// damage is why an account cannot be used, if all of it is there.
func (a account) damage() error {
	if a.about == nil || a.key == nil {
		return nil // certmagic makes another
	}
	if _, err := certmagic.PEMDecodePrivateKey(a.key); err != nil {
		return err
	}
	return json.Unmarshal(a.about, new(map[string]any))
}

// replaced reports whether the accounts are others than before. One that is damaged it
// removes, so that another is made.
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
