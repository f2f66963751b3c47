package certs

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/certmagic"
)

// TestCertificatesOfGoneNamesAreRemoved uses a store with certificates for names that
// belong to somebody, and for some that no longer do.
func TestCertificatesOfGoneNamesAreRemoved(t *testing.T) {
	const day = 24 * time.Hour
	for _, c := range []struct {
		name    string
		expires time.Duration // from now
		kept    bool
	}{
		{"www.shop.test", -300 * day, true},
		{"*.relay.test", -300 * day, true},
		{"left.test", 10 * day, true},
		{"given-back.test", -25 * day, true},
		{"gone.test", -31 * day, false},
		{"*.other.test", -31 * day, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, storage := newStateACME(t, true)
				keys := []string{
					certmagic.StorageKeys.SiteCert("acme.test-dir", c.name),
					certmagic.StorageKeys.SitePrivateKey("acme.test-dir", c.name),
					certmagic.StorageKeys.SiteMeta("acme.test-dir", c.name),
				}
				for i, key := range keys {
					data := []byte("{}")
					if i == 0 {
						data = leafPEM(t, time.Now().Add(c.expires), c.name)
					}
					if err := storage.Store(t.Context(), key, data); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					a.Run(ctx)
				}()
				time.Sleep(cleanEvery + 2*cleanFirst)
				cancel()
				<-ended
				for _, key := range keys {
					if got := storage.Exists(t.Context(), key); got != c.kept {
						t.Errorf("%s: there %v, want %v", key, got, c.kept)
					}
				}
			})
		})
	}
}

// TestRemovalThatWasCutShortIsEnded leaves only the key of a deleted name.
func TestRemovalThatWasCutShortIsEnded(t *testing.T) {
	a, storage := newStateACME(t, false)
	key := certmagic.StorageKeys.SitePrivateKey("acme.test-dir", "gone.test")
	if err := storage.Store(t.Context(), key, []byte("key")); err != nil {
		t.Fatal(err)
	}
	if n, err := a.clean(t.Context()); n != 1 || err != nil || storage.Exists(t.Context(), key) {
		t.Errorf("removed %d, %v; the key is there: %v", n, err, storage.Exists(t.Context(), key))
	}
	if n, err := a.clean(t.Context()); n != 0 || err != nil {
		t.Errorf("then removed %d more, %v", n, err)
	}
}
