package config

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func testConfig(dir string) Config {
	cfg := Defaults()
	cfg.Domain, cfg.PublicHost, cfg.DataDir = "relay.test", "127.0.0.1", dir
	return cfg
}

func TestLoadNamesTheFault(t *testing.T) {
	for text, want := range map[string]string{
		"domain = 'a.test'\ndomian = 'b'": `line 2: there is no key "domian"`,
		"[nats]\nurl = 'x'":               `there is no key "nats.url"`,
		"domain = 5":                      "line 1",
		"domain = ":                       "line 1",
	} {
		path := filepath.Join(t.TempDir(), "relay.toml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.toml")); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestLoadReadsEveryKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "relay.toml")
	err := os.WriteFile(path, []byte(`
domain = "Tunnel.Example.com."
data_dir = "data"
tunnel_listen = ":4433"
edge_http_listen = ":80"
edge_https_listen = ":443"
console_listen = "127.0.0.1:37280"
public_host = "relay.example.com"
public_http_port = 80
public_https_port = 443
public_tunnel_port = 4433
tcp_ports = "20000-20999"
udp_ports = "none"
tls_cert = "/etc/cert.pem"
tls_key = "/etc/key.pem"
any_domain = true
sign_in_host = "Login.Example.com."
trusted_proxies = ["10.0.0.0/8", "2001:db8::1"]
[nats]
urls = ["nats://a:4222"]
replicas = 3
[geo]
database = "/var/geo.mmdb"
[console]
allowed_hosts = ["console.example.com"]
[acme]
email = "ops@example.com"
directory = "https://acme.example.com/directory"
ca = "ca.pem"
challenges = ["http-01", "dns-01"]
wildcard = true
[acme.dns]
provider = "rfc2136"
server = "192.0.2.1:53"
key = "adit"
secret = "c2VjcmV0"
algorithm = "hmac-sha512"
resolvers = ["192.0.2.2:53"]
[[sign_in]]
name = "company"
issuer = "https://login.example.com"
client_id = "adit"
client_secret_file = "company.secret"
session = "1h"
[[sign_in]]
name = "github"
type = "github"
url = "https://github.example.com/"
client_id = "adit"
client_secret_file = "github.secret"
[limits]
header_time = "5s"
connections_per_address = 10
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	if cfg.Domain != "tunnel.example.com" || cfg.DataDir != filepath.Join(dir, "data") || cfg.Limits.ConnectionsPerAddress != 10 ||
		cfg.Limits.IdleTime != "2m" || cfg.NATS.Replicas != 3 || len(cfg.TrustedProxies) != 2 ||
		cfg.SignInName() != "login.example.com" || cfg.SignIn[0].ClientSecretFile != filepath.Join(dir, "company.secret") || cfg.SignIn[1].URL != "https://github.example.com" ||
		cfg.ACME.CA != filepath.Join(dir, "ca.pem") || !cfg.ACME.Wildcard || string(cfg.ACME.DNS.Secret) != "c2VjcmV0" {
		t.Errorf("got %+v", cfg)
	}
}

func dnsACME() *ACME {
	return &ACME{Challenges: []string{"dns-01"}, DNS: ACMEDNS{Provider: "rfc2136", Server: "a:53", Key: "k", Secret: "c2VjcmV0"}}
}

func hostACME(provider string) *ACME {
	return &ACME{Challenges: []string{"dns-01"}, DNS: ACMEDNS{Provider: provider, Secret: "tok"}}
}

func TestSecretsOfAConfigurationAreNotShown(t *testing.T) {
	a := dnsACME()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("configuration", "acme", a, "secret", a.DNS.Secret)
	for name, shown := range map[string]string{"v": fmt.Sprintf("%v", *a), "+v": fmt.Sprintf("%+v", *a), "#v": fmt.Sprintf("%#v", *a), "log": log.String()} {
		if strings.Contains(shown, "c2VjcmV0") || !strings.Contains(shown, hidden) {
			t.Errorf("%s: got %s", name, shown)
		}
	}
}

func TestValidateNamesTheKey(t *testing.T) {
	for key, change := range map[string]func(*Config){
		"domain":              func(c *Config) { c.Domain = "" },
		"domain ":             func(c *Config) { c.Domain = "a b" },
		"data_dir":            func(c *Config) { c.DataDir = "" },
		"tls_key":             func(c *Config) { c.TLSCert = "x" },
		"tunnel_listen":       func(c *Config) { c.TunnelListen = "4433" },
		"edge_http_listen":    func(c *Config) { c.EdgeHTTPListen = ":99999" },
		"console_listen":      func(c *Config) { c.ConsoleListen = "" },
		"public_host":         func(c *Config) { c.PublicHost = "a/b" },
		"public_http_port":    func(c *Config) { c.PublicHTTPPort = -1 },
		"public_https_port":   func(c *Config) { c.PublicHTTPSPort = 65536 },
		"public_tunnel_port":  func(c *Config) { c.PublicTunnelPort = 70000 },
		"limits.access_bytes": func(c *Config) { c.Limits.AccessBytes = -1 },
		"tcp_ports":           func(c *Config) { c.TCPPorts = "9-1" },
		"udp_ports":           func(c *Config) { c.UDPPorts = "0-70000" },
		"proxy_protocol":      func(c *Config) { c.ProxyProtocol = "v2" },
		"proxy_protocol ":     func(c *Config) { c.ProxyProtocol = "require" },
		"trusted_proxies[1]":  func(c *Config) { c.TrustedProxies = []string{"10.0.0.1", "x"} },
		"limits.idle_time":    func(c *Config) { c.Limits.IdleTime = "5" },
		"limits.udp_flows":    func(c *Config) { c.Limits.UDPFlows = -1 },
		"acme.email":          func(c *Config) { c.ACME = &ACME{Email: "me"} },
		"acme.directory":      func(c *Config) { c.ACME = &ACME{Directory: "http://a.test/dir"} },
		"acme.challenges[1]":  func(c *Config) { c.ACME = &ACME{Challenges: []string{"http-01", "dns"}} },
		"acme.wildcard":       func(c *Config) { c.ACME = &ACME{Wildcard: true} },
		"acme.dns.provider":   func(c *Config) { c.ACME = &ACME{Challenges: []string{"dns-01"}} },
		"acme.dns.provider ":  func(c *Config) { c.ACME = hostACME("bind") },
		"acme.dns.server ":    func(c *Config) { c.ACME = hostACME("cloudflare"); c.ACME.DNS.Server = "a:53" },
		"acme.dns.algorithm ": func(c *Config) {
			c.ACME = hostACME("cloudflare")
			c.ACME.DNS.Algorithm = "hmac-sha256"
		},
		"acme.dns.key ":         func(c *Config) { c.ACME = hostACME("route53") },
		"acme.dns.key  ":        func(c *Config) { c.ACME = hostACME("cloudflare"); c.ACME.DNS.Key = "k" },
		"acme.dns.endpoint":     func(c *Config) { c.ACME = hostACME("cloudflare"); c.ACME.DNS.Endpoint = "http://a.test" },
		"acme.dns.endpoint ":    func(c *Config) { c.ACME = dnsACME(); c.ACME.DNS.Endpoint = "https://a.test" },
		"acme.dns.region":       func(c *Config) { c.ACME = hostACME("cloudflare"); c.ACME.DNS.Region = "us-east-1" },
		"acme.dns.ca":           func(c *Config) { c.ACME = hostACME("cloudflare"); c.ACME.DNS.CA = "ca.pem" },
		"acme.dns.secret_file":  func(c *Config) { c.ACME = hostACME("cloudflare"); c.ACME.DNS.Secret = "" },
		"acme.dns.secret_file ": func(c *Config) { c.ACME = hostACME("cloudflare"); c.ACME.DNS.SecretFile = "x" },
		"acme.email ":           func(c *Config) { c.ACME = hostACME("dnspod"); c.ACME.DNS.Key = "1" },
		"acme.dns.server":       func(c *Config) { c.ACME = dnsACME(); c.ACME.DNS.Server = "ns" },
		"acme.dns.key":          func(c *Config) { c.ACME = dnsACME(); c.ACME.DNS.Key = "" },
		"acme.dns.secret":       func(c *Config) { c.ACME = dnsACME(); c.ACME.DNS.Secret = "!" },
		"acme.dns.algorithm":    func(c *Config) { c.ACME = dnsACME(); c.ACME.DNS.Algorithm = "md5" },
		"nats.key":              func(c *Config) { c.NATS.Cert = "x" },
	} {
		cfg := testConfig(t.TempDir())
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), strings.TrimSpace(key)+": ") {
			t.Errorf("%s: got %v", key, err)
		}
	}
}

// TestNamesOfOtherScriptsAreTakenAsPeopleWriteThem checks the conversion, since
// certificates, DNS and clients' claims use the xn-- form.
func TestNamesOfOtherScriptsAreTakenAsPeopleWriteThem(t *testing.T) {
	for given, want := range map[string]string{
		"München.Example.": "xn--mnchen-3ya.example", "xn--mnchen-3ya.example": "xn--mnchen-3ya.example", "例え.jp": "xn--r8jz45g.jp",
	} {
		c := Config{Domain: given, PublicHost: given, SignInHost: given}
		_ = c.Validate() // of other keys it has no value
		if c.Domain != want || c.PublicHost != want || c.SignInHost != want {
			t.Errorf("%s is %q, %q and %q, want %q", given, c.Domain, c.PublicHost, c.SignInHost, want)
		}
	}
	c := Config{Domain: "mün chen.example"}
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), `"mün chen.example" is not a domain name`) {
		t.Errorf("a name with a space: %v", err)
	}
}
