package config

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSecretOfADNSHost(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name, variable string
		cfg            ACMEDNS
		want           string // of the error; empty: none
	}{
		{"a file", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("a", "tok\n", 0o600)}, ""},
		{"a file of an editor of Windows", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("a8", "\ufefftok\r\n", 0o600)}, ""},
		{"a file in UTF-16", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("a16", "\xff\xfet\x00o\x00k\x00", 0o600)}, "save it as UTF-8"},
		{"a file with a byte order mark alone", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("a0", "\ufeff\r\n", 0o600)}, "is empty"},
		{"base64 after a byte order mark", "", ACMEDNS{Provider: "rfc2136", Server: "a:53", Key: "k", SecretFile: file("a64", "\ufeffc2VjcmV0", 0o600)}, ""},
		{"the configuration", "", ACMEDNS{Provider: "cloudflare", Secret: "tok"}, ""},
		{"the environment", "tok", ACMEDNS{Provider: "cloudflare"}, ""},
		{"the environment, for an update", "c2VjcmV0", ACMEDNS{Provider: "rfc2136", Server: "a:53", Key: "k"}, ""},
		{"not signed", "", ACMEDNS{Provider: "rfc2136", Server: "a:53"}, ""},
		{"no file", "", ACMEDNS{Provider: "cloudflare", SecretFile: filepath.Join(dir, "none")}, "acme.dns.secret_file: "},
		{"an empty file", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("b", "\n", 0o600)}, "is empty"},
		{"two words", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("c", "a b", 0o600)}, "must be one word"},
		{"a long file", "", ACMEDNS{Provider: "cloudflare", SecretFile: file("d", strings.Repeat("x", maxSecretFile+1), 0o600)}, "too long"},
		{"not base64", "", ACMEDNS{Provider: "rfc2136", Server: "a:53", Key: "k", SecretFile: file("e", "!!", 0o600)}, "does not hold base64"},
		{"no certificate", "", ACMEDNS{Provider: "cloudflare", Secret: "tok", Endpoint: "https://a.test", CA: file("f", "no", 0o600)}, "acme.dns.ca: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(secretVariable, tt.variable)
			if key, fault := tt.cfg.validate(""); key != "" {
				t.Fatalf("the configuration is refused: %s: %s", key, fault)
			}
			var log bytes.Buffer
			_, err := tt.cfg.open("", slog.New(slog.NewTextHandler(&log, nil)))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if log.String() != "" {
				t.Errorf("it warns: %s", log.String())
			}
		})
	}
	if os.PathSeparator == '/' {
		var log bytes.Buffer
		cfg := ACMEDNS{Provider: "cloudflare", SecretFile: file("g", "t0psecret", 0o600)}
		if err := os.Chmod(cfg.SecretFile, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := cfg.open("", slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "chmod 600") || strings.Contains(log.String(), "t0psecret") {
			t.Errorf("a file that everybody may read: the log has %q", log.String())
		}
	}
}

func TestTheMarkOfAFileIsNoPartOfItsSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "company.secret")
	if err := os.WriteFile(path, []byte("\ufefft0psecret\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadSecretFile("sign_in[0].client_secret_file", path, slog.New(slog.DiscardHandler))
	if err != nil || got != "t0psecret" {
		t.Errorf("got %q, %v, want t0psecret", got, err)
	}
}
