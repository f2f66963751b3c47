package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// writeCertificate writes a certificate for name into dir, replacing each file in one
// step, and returns its serial number.
func writeCertificate(t *testing.T, dir, name string) string {
	t.Helper()
	pemCA, err := NewLocalAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLocal(pemCA, func(name string) string { return name })
	if err != nil {
		t.Fatal(err)
	}
	// A leaf whose key is a file's: the authority's own would not be a site's.
	leaf, err := l.mint(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	key, err := marshalKey(leaf)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{
		"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}), "key.pem": key,
	} {
		if err := os.WriteFile(filepath.Join(dir, file+".new"), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, file+".new"), filepath.Join(dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	return leaf.Leaf.SerialNumber.String()
}

var errOther = errors.New("asked elsewhere")

// logged collects what is logged.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(s string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), s)
}

// fileCertificate returns a certificate in its own files that is checked frequently.
func fileCertificate(t *testing.T) (f *File, dir string, serial func() string, log *logged) {
	t.Helper()
	dir, log = t.TempDir(), &logged{}
	writeCertificate(t, dir, "site.test")
	f, err := NewFile(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return nil, errOther })
	if err != nil {
		t.Fatal(err)
	}
	f.every = 5 * time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() { f.Run(ctx, slog.New(slog.NewTextHandler(log, nil)), "site.test", true) })
	t.Cleanup(func() { cancel(); group.Wait() })
	return f, dir, func() string {
		cert, err := f.Get(&tls.ClientHelloInfo{ServerName: "site.test"})
		if err != nil {
			t.Fatal(err)
		}
		return cert.Leaf.SerialNumber.String()
	}, log
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(40 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

func TestACertificateInFilesIsReadAgain(t *testing.T) {
	f, dir, serial, log := fileCertificate(t)
	next := writeCertificate(t, dir, "site.test")
	waitFor(t, "the new certificate is in use", func() bool { return serial() == next })
	if f.Covers("site.test") == nil || f.Covers("other.test") != nil {
		t.Error("it covers other names than it is for")
	}
	if _, err := f.Get(&tls.ClientHelloInfo{ServerName: "other.test"}); !errors.Is(err, errOther) {
		t.Errorf("another name: got %v, want the other source asked", err)
	}

	if err := os.WriteFile(filepath.Join(dir, "cert.pem"), []byte("half of a cert"), 0o600); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it is said that the new one is of no use", func() bool { return log.count("cannot be used") > 0 })
	if got := serial(); got != next {
		t.Errorf("serial %s is in use, want the one before, %s", got, next)
	}
	if err := os.Remove(filepath.Join(dir, "cert.pem")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it is said that there is none", func() bool { return log.count("cannot be read") > 0 })
	last := writeCertificate(t, dir, "site.test")
	waitFor(t, "the third certificate is in use", func() bool { return serial() == last })
	// Once for each state: the files may be seen with only one of them new, or cut.
	if n := log.count("cannot be used"); n > 5 {
		t.Errorf("it was said %d times, not once for each state of the files", n)
	}
}

func TestACertificateThatBrowsersWarnOfIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		of, domain string
		others     bool
		at         time.Duration // from now
		want       string
	}{
		"for the wildcard":         {"*.site.test", "site.test", false, 0, ""},
		"for the domain alone":     {"site.test", "site.test", false, 0, "use one for the wildcard"},
		"for the domain, and ACME": {"site.test", "site.test", true, 0, ""},
		"for another domain":       {"*.other.test", "site.test", false, 0, "use one for the wildcard"},
		"expired":                  {"*.site.test", "site.test", true, 50 * 365 * 24 * time.Hour, "renew it"},
		"of the future":            {"*.site.test", "site.test", true, -50 * 365 * 24 * time.Hour, "this machine's clock"},
	} {
		dir := t.TempDir()
		writeCertificate(t, dir, c.of)
		f, err := NewFile(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Fault(c.domain, c.others, time.Now().Add(c.at)); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestANewCertificateThatBrowsersWarnOfIsSaid replaces the files with those of an expired
// certificate, and then of a good one.
func TestANewCertificateThatBrowsersWarnOfIsSaid(t *testing.T) {
	_, dir, serial, log := fileCertificate(t)
	before := serial()
	old := localCertificates(t)
	leaf, err := old.mint("site.test", time.Now().Add(-60*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	key, err := marshalKey(leaf)
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string][]byte{"cert.pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Certificate[0]}), "key.pem": key} {
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "the certificate is read", func() bool { return serial() != before })
	waitFor(t, "it is said that it has expired", func() bool { return log.count("it has expired: renew it") > 0 })
	next := writeCertificate(t, dir, "site.test")
	waitFor(t, "the good one is in use", func() bool { return serial() == next })
	if n := log.count("it has expired"); n != 1 {
		t.Errorf("it was said %d times, want once", n)
	}
}

// TestCertificatesOfOtherEditors uses files as editors and tools on Windows write them,
// and some that cannot be used.
func TestCertificatesOfOtherEditors(t *testing.T) {
	for name, c := range map[string]struct {
		cert, key func(text []byte) []byte // may be nil
		want      string                   // in the error
	}{
		"a byte order mark": {bom, bom, ""},
		"line ends":         {crlf, crlf, ""},
		"UTF-16":            {func([]byte) []byte { return []byte("\xff\xfe-\x00") }, nil, "save it as UTF-8"},
		"a passphrase": {nil, func([]byte) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte{0x30, 0}})
		}, "has a passphrase"},
		"a passphrase of old": {nil, func([]byte) []byte {
			return pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}, Bytes: []byte{0x30, 0}})
		}, "has a passphrase"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeCertificate(t, dir, "site.test")
			files := map[string]func([]byte) []byte{"cert.pem": c.cert, "key.pem": c.key}
			for file, change := range files {
				text, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				if change == nil {
					continue
				}
				if err := os.WriteFile(filepath.Join(dir, file), change(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			_, err := NewFile(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), nil)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func bom(text []byte) []byte { return append([]byte("\ufeff"), text...) }

func crlf(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")) }

func marshalKey(c *tls.Certificate) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}
