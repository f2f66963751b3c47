package relay

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2/hpack"

	"adit/tunnel/relay/config"
	"adit/tunnel/wire"
)

// wildcardFiles makes a certificate for names in files that cfg uses.
func wildcardFiles(t *testing.T, cfg *config.Config, names ...string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: names,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cfg.TLSCert, cfg.TLSKey = filepath.Join(t.TempDir(), "c.pem"), filepath.Join(t.TempDir(), "k.pem")
	for file, block := range map[string]*pem.Block{cfg.TLSCert: {Type: "CERTIFICATE", Bytes: der}, cfg.TLSKey: {Type: "PRIVATE KEY", Bytes: keyDER}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConnectionsOfOneSiteForAnother requests a site on a connection that was made for
// another one. Browsers do that if one certificate covers both names. An https tunnel is
// served. For a tls tunnel, whose certificate is the origin's own, the browser is told to
// make a separate connection (RFC 9110, section 7.4). If the certificate does not cover
// the other name, no browser sends such a request, and nobody is served.
func TestConnectionsOfOneSiteForAnother(t *testing.T) {
	for name, c := range map[string]struct {
		wildcard bool
		want     map[string]string // host → status
	}{
		"one certificate for both": {true, map[string]string{"shop": "200", "other": "200", "secret": "421", "nobody": "404"}},
		"a certificate for each":   {false, map[string]string{"shop": "200", "other": "421", "secret": "421", "nobody": "421"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			if c.wildcard {
				wildcardFiles(t, &cfg, "*.relay.test")
			}
			s := startSite(t, cfg, text("served"))
			s.agent.mustClaim("other", wire.Claim{Type: wire.TypeHTTPS, Domain: "other"}, s.agent.origins[1])
			s.agent.mustClaim("secret", wire.Claim{Type: wire.TypeTLS, Domain: "secret"}, s.agent.origins[1])
			three := s.visitor3(t)
			three.Transport.(*http3.Transport).TLSClientConfig.InsecureSkipVerify = true
			sessions := tls.NewLRUClientSessionCache(1)
			resumed := false // of which some connection has no certificate of its own
			for range 2 {
				for host, want := range c.want {
					conn := dialHTTP2By(t, s, &tls.Config{ServerName: "shop.relay.test", InsecureSkipVerify: true, NextProtos: []string{"h2"}, ClientSessionCache: sessions})
					resumed = resumed || conn.ConnectionState().DidResume
					conn.headers(1, true, []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/"}, {Name: ":authority", Value: host + ".relay.test"}}...)
					if got := conn.answer(1); got != want {
						t.Errorf("%s by HTTP/2: %s, want %s", host, got, want)
					}
					conn.Close()
					req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https, nil)
					req.Host = host + ".relay.test"
					resp, err := three.Do(req)
					if err != nil {
						t.Fatal(err)
					}
					resp.Body.Close()
					if got := resp.Status[:3]; got != want {
						t.Errorf("%s by HTTP/3: %s, want %s", host, got, want)
					}
				}
			}
			if !resumed {
				t.Error("no session was resumed")
			}
		})
	}
}

// TestNamesOfNoSiteAreToldSoByTLS checks the alert: another one would say that the relay
// is broken.
func TestNamesOfNoSiteAreToldSoByTLS(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("k", wire.Claim{Type: wire.TypeTLS, Domain: "secret"}, startOrigin(t, text("")))
	for _, name := range []string{"nobody.relay.test", "elsewhere.example", ""} {
		conn, err := tls.Dial("tcp", hostOf(t, s.https), &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err == nil {
			conn.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%q is told %v, want that the name is not known", name, err)
		}
	}
	for _, name := range []string{"nobody.relay.test", "secret.relay.test"} {
		conn, err := quic.DialAddr(t.Context(), s.edge.HTTPSAddr().String(), &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"h3"}}, nil)
		if err == nil {
			conn.CloseWithError(0, "")
		}
		const unrecognizedName = 112 // RFC 8446, section 6
		if no := (*quic.TransportError)(nil); !errors.As(err, &no) || no.ErrorCode != 0x100+unrecognizedName {
			t.Errorf("%q by QUIC is told %v, want that the name is not known", name, err)
		}
	}
}
