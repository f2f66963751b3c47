package definition

import (
	"testing"

	"adit/tunnel/wire"
)

// TestClaimSaysHowTheServiceNamesItself, and each path's.
func TestClaimSaysHowTheServiceNamesItself(t *testing.T) {
	for local, want := range map[string]string{SchemeHTTP: "http", SchemeHTTPS: "https", SchemeH2C: "http"} {
		c := Tunnel{Type: wire.TypeHTTPS, LocalScheme: local, LocalPort: 80, Paths: []Path{{Path: "/api", LocalScheme: local, LocalPort: 81}}}.Claim()
		if c.Scheme != want || c.Port != 80 || c.Paths[0].Scheme != want || c.Paths[0].Port != 81 {
			t.Errorf("%s: got %s:%d and %s:%d, want %s:80 and :81", local, c.Scheme, c.Port, c.Paths[0].Scheme, c.Paths[0].Port, want)
		}
	}
	if c := (Tunnel{Type: wire.TypeTCP, LocalPort: 22}).Claim(); c.Scheme != "" || c.Port != 0 {
		t.Errorf("tcp: got %q, %d", c.Scheme, c.Port)
	}
}
