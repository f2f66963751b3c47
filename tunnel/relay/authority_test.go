package relay

import (
	"bytes"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

// TestTheAuthoritysFileIsReplacedAsAWhole replaces a file that was cut short by a full
// disk or a power failure. Nobody who reads it meanwhile gets only a part.
func TestTheAuthoritysFileIsReplacedAsAWhole(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := startRelay(t, cfg)
	whole, err := os.ReadFile(r.CAFile())
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(whole) {
		t.Fatalf("the file has %q, %v", whole, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	cut, old := whole[:len(whole)/2], filepath.Join(t.TempDir(), "old.pem")
	if err := os.WriteFile(r.CAFile(), cut, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(r.CAFile(), old); err != nil {
		t.Fatal(err)
	}
	startRelay(t, r.cfg)
	if got, err := os.ReadFile(r.CAFile()); err != nil || !bytes.Equal(got, whole) {
		t.Errorf("the file has %q, %v", got, err)
	}
	if got, err := os.ReadFile(old); err != nil || !bytes.Equal(got, cut) {
		t.Errorf("it was written in place: %q, %v", got, err)
	}
}
