package relay

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/certs"
	"adit/tunnel/wire"
)

// TestACMEAccountThatIsOfNoUse makes the authority forget a relay's account, or damages
// the account in the store. The next name gets its certificate through a new account.
func TestACMEAccountThatIsOfNoUse(t *testing.T) {
	t.Parallel() // most of it is waiting
	for what, c := range map[string]struct {
		end   string // of the keys that are damaged; empty: the authority forgets
		value string
	}{
		"forgotten":          {},
		"the key is damaged": {".key", "-----BEGIN"},
		"the rest":           {".json", "{"},
	} {
		t.Run(what, func(t *testing.T) {
			l := newACMELab(t, "http-01")
			l.start(t)
			var log lockedBuffer
			r := startRelayWith(t, Options{
				Config: l.cfg, Log: slog.New(slog.NewTextHandler(&log, nil)),
				certs: func(c *certs.Config) { c.Retry, c.Lookup = time.Minute, loopback },
			})
			r.serveHTTPS(t, "shop")
			mustCertificate(t, r, "shop.relay.test")
			keys, err := r.store.Certificates.List(t.Context(), "acme", true)
			if err != nil {
				t.Fatal(err)
			}
			damaged := 0
			for _, key := range keys {
				if c.end != "" && strings.Contains(key, "/users/") && strings.HasSuffix(key, c.end) {
					damaged++
					if err := r.store.Certificates.Store(t.Context(), key, []byte(c.value)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if c.end == "" {
				l.stop()
				l.start(t)
			} else if damaged != 1 {
				t.Fatalf("%d keys are damaged of %q", damaged, keys)
			}
			connect(t, r.client(t, "more"), "i2").mustClaim("k-blog", wire.Claim{Type: wire.TypeHTTPS, Domain: "blog"}, startOrigin(t, text("blog")))
			cert, err := certificate(r, "blog.relay.test")
			if err != nil {
				t.Errorf("visit: %v\n%s", err, log.String())
			} else if cert.DNSNames[0] != "blog.relay.test" {
				t.Errorf("got a certificate of %v", cert.DNSNames)
			}
		})
	}
}
