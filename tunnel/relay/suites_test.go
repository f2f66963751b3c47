package relay

import (
	"crypto/tls"
	"net"
	"testing"
)

// TestVisitorsByTLS12HaveAEAD also checks that nothing is offered that scanners warn
// about.
func TestVisitorsByTLS12HaveAEAD(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	for suite, want := range map[uint16]bool{
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256:       true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384:       true,
		tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: true,
		tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA:          false,
		tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA:          false,
	} {
		raw, err := net.Dial("tcp", s.Addrs().HTTPS)
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		c := tls.Client(raw, &tls.Config{ServerName: "shop.relay.test", RootCAs: s.roots(t), MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{suite}})
		if err := c.HandshakeContext(t.Context()); (err == nil) != want {
			t.Errorf("%s: %v", tls.CipherSuiteName(suite), err)
		}
	}
}
