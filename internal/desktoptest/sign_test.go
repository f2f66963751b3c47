package desktoptest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/internal/require"
)

// TestSignaturesVerify signs with keys made for the test, which nobody trusts.
func TestSignaturesVerify(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	for _, tool := range []string{"openssl", "osslsigncode", "makensis", "wixl", "msiextract", "gpg", "gpgconf"} {
		require.Tool(t, tool)
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	must(t, patience, nil, "openssl", "req", "-x509", "-newkey", "rsa:3072", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
		"-subj", "/CN=adit test", "-addext", "extendedKeyUsage=codeSigning", "-addext", "keyUsage=digitalSignature")
	// A folder with a short name: in it gpg's agent has a socket.
	ring, err := os.MkdirTemp("", "gpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(ring) })
	env := []string{"GNUPGHOME=" + ring}
	t.Cleanup(func() { command(t, patience, env, "gpgconf", "--kill", "all") })
	const who = "release@adit.test"
	must(t, patience, env, "gpg", "--batch", "--passphrase", "", "--quick-generate-key", who, "ed25519", "sign", "2d")

	out := packIn(t, env, firstVersion, "-only", "nsis,msi", "-arch", "amd64", "-quick", "-sign-cert", cert, "-sign-key", key, "-gpg-key", who)
	must(t, patience, env, "gpg", "--batch", "--verify", filepath.Join(out, "SHA256SUMS.asc"), filepath.Join(out, "SHA256SUMS"))
	installer := one(t, out, "*.msi")
	must(t, patience, nil, "msiextract", "-C", dir, installer)
	files := []string{installer, one(t, out, "*-setup.exe")}
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if strings.HasSuffix(path, ".exe") {
			files = append(files, path)
		}
		return err
	})
	if err != nil || len(files) != 4 {
		t.Fatalf("got %v, error %v, want the MSI, the setup program and two programs", files, err)
	}
	for _, file := range files {
		if said, err := command(t, patience, nil, "osslsigncode", "verify", "-CAfile", cert, "-in", file); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(file), err, said)
		}
	}
}
