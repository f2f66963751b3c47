package relay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/tunnel/relay/config"
)

// TestFilesThatCannotBeReadAtTheStartAreSaid checks that each key at fault is named,
// once.
func TestFilesThatCannotBeReadAtTheStartAreSaid(t *testing.T) {
	dir := t.TempDir()
	none, text := filepath.Join(dir, "none"), filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*config.Config)
		want   string
	}{
		"certificate": {func(c *config.Config) { c.TLSCert, c.TLSKey = none, none }, "tls_cert: there is no file " + none + "; is the name right?"},
		"key":         {func(c *config.Config) { c.TLSCert, c.TLSKey = text, none }, "tls_key: there is no file " + none + "; is the name right?"},
		"no certificate": {
			func(c *config.Config) { c.TLSCert, c.TLSKey = text, text },
			"tls_cert: " + text + " and its key " + text + " cannot be used: failed to find any PEM data in certificate input; both are PEM files, the certificate first and then those of its issuers",
		},
		"database":       {func(c *config.Config) { c.Geo.Database = none }, "geo.database: there is no file " + none + "; is the name right?"},
		"no database":    {func(c *config.Config) { c.Geo.Database = text }, "geo.database: " + text + " is not a database in MMDB format: "},
		"authority":      {func(c *config.Config) { c.ACME = &config.ACME{CA: none} }, "acme.ca: there is no file " + none + "; is the name right?"},
		"data is a file": {func(c *config.Config) { c.DataDir = text }, "the data folder " + text + " cannot be made ("},
		"nobody's NATS":  {func(c *config.Config) { c.NATS.URLs = []string{"nats://me:secret@127.0.0.1:1"} }, "connect to NATS at nats://me:xxxxx@127.0.0.1:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			c.change(&cfg)
			r, err := New(Options{Config: cfg})
			if err == nil {
				r.Close()
				t.Fatal("it started")
			}
			if got := err.Error(); got != c.want && (got == "" || !strings.HasPrefix(got, c.want) || strings.HasSuffix(c.want, "?")) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPortsInUseAreSaid(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	for key, change := range map[string]func(*config.Config){
		"tunnel_listen":     func(c *config.Config) { c.TunnelListen = r.Addrs().Tunnel },
		"edge_http_listen":  func(c *config.Config) { c.EdgeHTTPListen = r.Addrs().HTTP },
		"edge_https_listen": func(c *config.Config) { c.EdgeHTTPSListen = r.Addrs().HTTPS },
		"console_listen":    func(c *config.Config) { c.ConsoleListen = r.Addrs().Console },
		"data folder":       func(c *config.Config) { c.DataDir = r.cfg.DataDir },
	} {
		cfg := testConfig(t.TempDir())
		change(&cfg)
		if _, err := New(Options{Config: cfg}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: got %v", key, err)
		}
	}
}
