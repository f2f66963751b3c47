package definition

import (
	"testing"

	"adit/tunnel/wire"
)

// TestClaimSaysHowTheServiceNamesItself, and each path's.
func TestClaimSaysHowTheServiceNamesItself(t *testing.T) {
	for local, want := range map[string]string{SchemeHTTP: "http", SchemeHTTPS: "https", SchemeH2C: "http"} {
		c := Tunnel{Type: wire.TypeHTTPS, LocalScheme: local, Paths: []Path{{Path: "/api", LocalScheme: local}}}.Claim()
		if c.Scheme != want || c.Paths[0].Scheme != want {
			t.Errorf("%s: got %q and %q, want %q", local, c.Scheme, c.Paths[0].Scheme, want)
		}
	}
	if c := (Tunnel{Type: wire.TypeTCP}).Claim(); c.Scheme != "" {
		t.Errorf("tcp: got %q", c.Scheme)
	}
}
