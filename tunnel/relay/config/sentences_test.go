package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestAConfigurationThatCannotBeReadSaysWhatToDo checks the complete sentences: they must
// not repeat the system's message, or contain the names of Go types.
func TestAConfigurationThatCannotBeReadSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "relay.toml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || err.Error() != "configuration: there is no file "+path+"; is the name right?" {
		t.Errorf("a file that is not there: %v", err)
	}
	for text, want := range map[string]string{
		"domian = \"a.test\"":                        `, line 1: there is no key "domian"; did you mean "domain"?`,
		"# two\n[limits]\nsesions = 4":               `, line 3: there is no key "limits.sesions"; did you mean "limits.sessions"?`,
		"urls = [\"a\"]":                             `, line 1: there is no key "urls"; did you mean "nats.urls"?`,
		"[acme.dns]\nprovidr = \"rfc2136\"":          `, line 2: there is no key "acme.dns.providr"; did you mean "acme.dns.provider"?`,
		"frobnicate = 1":                             `, line 1: there is no key "frobnicate"`,
		"domain = 5":                                 `, line 1: domain must be a text in quotes`,
		"http3 = \"yes\"":                            `, line 1: http3 must be true or false`,
		"[limits]\nsessions = \"4\"":                 `, line 2: limits.sessions must be a whole number, without quotes`,
		"trusted_proxies = \"10.0.0.1\"":             `, line 1: trusted_proxies must be a list of texts, as ["a", "b"]`,
		"acme = 1":                                   `, line 1: acme must be a table, as [acme]`,
		"domain = a.test":                            `, line 1, column 10: this is not TOML: `,
		"domain = “a.test”":                          `, line 1, column 10: this is not TOML: it has typographic quotes; write straight ones: "`,
		"domain: a.test":                             `, line 1, column 7: this is not TOML: write = between a key and its value, not a colon`,
		"public-host = \"a\"":                        `, line 1: there is no key "public-host"; did you mean "public_host"?`,
		"[limits]\nudp_flows = 99999999999999999999": `, line 2, column 13: this number is too large here; write a smaller one`,
		"[limits]\nidle_time = 60":                   `, line 2: limits.idle_time must be a duration in quotes, as "30s"`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || err.Error() != path+want && (!strings.HasSuffix(want, ": ") || !strings.HasPrefix(err.Error(), path+want)) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// TestValuesThatFirstTimersWriteAreAnswered checks that somebody who writes too much of a
// name, or too little of an address, is told how to write it.
func TestValuesThatFirstTimersWriteAreAnswered(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"scheme":      {func(c *Config) { c.Domain = "https://a.test" }, `domain: "https://a.test" is not a domain name; write the name alone, as tunnel.example.com`},
		"wildcard":    {func(c *Config) { c.Domain = "*.a.test" }, `domain: "*.a.test" is not a domain name; write the name alone, as tunnel.example.com`},
		"host's port": {func(c *Config) { c.PublicHost = "a.test:4433" }, `public_host: "a.test:4433" is not a host name or address; write it alone, as tunnel.example.com: the port is that of tunnel_listen`},
		"no key":      {func(c *Config) { c.TLSCert = "c.pem" }, "tls_key: tls_cert and tls_key go together: set both, or neither"},
		"port alone":  {func(c *Config) { c.EdgeHTTPListen = "80" }, `edge_http_listen: "80" is not host:port, as 127.0.0.1:8080, nor a port alone, as :8080`},
		"no unit":     {func(c *Config) { c.Limits.IdleTime = "60" }, `limits.idle_time: "60" is not a duration, as 30s`},
		"a name":      {func(c *Config) { c.TrustedProxies = []string{"nginx"} }, `trusted_proxies[0]: "nginx" is not an address or CIDR, as 192.0.2.1 or 10.0.0.0/8`},
	} {
		cfg := testConfig(t.TempDir())
		c.change(&cfg)
		if err := cfg.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v\nwant %s", name, err, c.want)
		}
	}
}

// TestANumberBeyondTheSystemIsNamed checks one of the limits, which ends at 2147483647 on
// 32-bit systems and is accepted on others.
func TestANumberBeyondTheSystemIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "relay.toml")
	if err := os.WriteFile(path, []byte("[limits]\naccess_bytes = 3000000000\nudp_flows = 3000000000"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := path + ", line 3, column 13: this number is too large here; write a smaller one"
	cfg, err := Load(path)
	if strconv.IntSize == 64 && err != nil || strconv.IntSize == 32 && (err == nil || err.Error() != want) {
		t.Errorf("got error %v", err)
	}
	if cfg.Limits.AccessBytes != 3000000000 {
		t.Errorf("access_bytes: got %d", cfg.Limits.AccessBytes)
	}
}
