package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/config"
)

// TestRelayCommands speaks to a running relay that is found by its data folder,
// and then by the environment.
func TestRelayCommands(t *testing.T) {
	cfg := config.Defaults()
	cfg.Domain, cfg.DataDir, cfg.PublicHost = "relay.test", t.TempDir(), "127.0.0.1"
	cfg.TunnelListen, cfg.EdgeHTTPListen, cfg.EdgeHTTPSListen, cfg.ConsoleListen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	r, err := relay.New(relay.Options{Config: cfg, Drain: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	auditFile := filepath.Join(t.TempDir(), "audit.ndjson")
	backup, restored := filepath.Join(t.TempDir(), "backup.json"), filepath.Join(t.TempDir(), "restored")
	elsewhere := map[string]string{"ADIT_RELAY_ADMIN_URL": "http://" + r.Addrs().Console, "ADIT_RELAY_ADMIN_TOKEN": r.AdminToken()}
	here := []string{"--data_dir", cfg.DataDir}
	file := filepath.Join(t.TempDir(), "relay.toml")
	if err := os.WriteFile(file, fmt.Appendf(nil, "domain = %q\ndata_dir = %q\n", cfg.Domain, cfg.DataDir), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		in     string
		env    map[string]string
		code   int
		stdout string
		stderr string
	}{
		{append([]string{"relay", "client", "add", "shop", "--json"}, here...), "", nil, 0, `"auth_token": "adit_`, ""},
		{append([]string{"relay", "client", "add", "shop"}, here...), "", nil, 1, "", "already"},
		{[]string{"relay", "client", "list"}, "", elsewhere, 0, "shop", ""},
		{[]string{"relay", "client", "add", "lab", "--types", "http,tcp", "--domains", "lab-*", "--ports", "20000-20010", "--tunnels", "5", "--expires", "720h", "--bandwidth", "10MB", "--monthly_bytes", "1TB", "--over_quota", "stop", "--own_policies"}, "", elsewhere, 0, "adit_", ""},
		{[]string{"relay", "client", "show", "lab"}, "", elsewhere, 0, "10000000 bytes a second", ""},
		{[]string{"relay", "client", "set", "lab", "--tunnels", "7", "--expires", "none", "--json"}, "", elsewhere, 0, `"tunnels": 7`, ""},
		{[]string{"relay", "client", "set", "lab", "--types", "", "--ports", "", "--bandwidth", "0", "--own_policies=false"}, "", elsewhere, 0, "types               all\n", ""},
		{[]string{"relay", "client", "show", "lab"}, "", elsewhere, 0, "bandwidth           unlimited\n", ""},
		{[]string{"relay", "client", "show", "lab"}, "", elsewhere, 0, "own policies        no\n", ""},
		{[]string{"relay", "client", "set", "lab"}, "", elsewhere, 2, "", "say what to change"},
		{[]string{"relay", "access", "--export", "/no/such/folder/a.csv"}, "", elsewhere, 1, "", "adit: open /no/such/folder/a.csv"},
		{[]string{"relay", "backup", "-"}, "", elsewhere, 0, `"clients"`, ""},
		{[]string{"relay", "backup", t.TempDir()}, "", elsewhere, 1, "", "is a folder"},
		{[]string{"relay", "client", "set", "lab", "--types", "ftp"}, "", elsewhere, 1, "", "adit: --types: \"ftp\" is not one of"},
		{[]string{"relay", "client", "set", "lab", "--bandwidth", "10"}, "", elsewhere, 1, "", "adit: --bandwidth: must be 0, or at least 1024"},
		{[]string{"relay", "client", "set", "lab", "--bandwidth", "fast"}, "", elsewhere, 2, "", "number of bytes"},
		{[]string{"relay", "client", "set", "lab", "--expires", "soon"}, "", elsewhere, 2, "", "2027-01-31"},
		{[]string{"relay", "client", "add", "late", "--expires", "2020-01-01"}, "", elsewhere, 1, "", "2020-01-01 has passed"},
		{[]string{"relay", "audit", "list"}, "", elsewhere, 0, "client.add", ""},
		{[]string{"relay", "audit", "verify"}, "", elsewhere, 0, "intact", ""},
		{[]string{"relay", "audit", "verify", "--head", "abc"}, "", elsewhere, 1, "", "not in the chain"},
		{[]string{"relay", "audit", "export", auditFile}, "", elsewhere, 0, "bytes are in", ""},
		{[]string{"relay", "audit", "verify", auditFile}, "", elsewhere, 0, "intact", ""},
		{[]string{"relay", "sink", "set", "siem", "https://siem.example.com/adit", "--events", "access,audit", "--disabled"}, "", elsewhere, 0, "is set", ""},
		{[]string{"relay", "sink", "set", "log", "udp://127.0.0.1:514"}, "", elsewhere, 1, "", "allow_private"},
		{[]string{"relay", "sink", "list"}, "", elsewhere, 0, "siem", ""},
		{[]string{"relay", "sink", "delete", "siem"}, "", elsewhere, 0, "deleted", ""},
		{[]string{"relay", "sink", "test", "siem"}, "", elsewhere, 1, "", "no sink named siem; `adit relay sink list` shows them"},
		{[]string{"relay", "domains"}, "", elsewhere, 0, "No client has a name", ""},
		{[]string{"relay", "release", "shop"}, "", elsewhere, 1, "", "no client has shop."},
		{[]string{"relay", "sign-out", "ann@example.com"}, "", elsewhere, 1, "", "no identity provider"},
		{[]string{"relay", "access", "--export", "-"}, "", elsewhere, 0, "", ""},
		{[]string{"relay", "client", "rotate", "shop", "--overlap", "1h"}, "", elsewhere, 0, "adit_", "keeps working for 1 hour."},
		{[]string{"relay", "client", "rotate", "shop", "--overlap", "0"}, "", elsewhere, 0, "adit_", "no longer works."},
		{[]string{"relay", "client", "revoke", "nobody"}, "", elsewhere, 1, "", "no client named nobody; `adit relay client list` shows them"},
		{[]string{"relay", "client", "add"}, "", elsewhere, 2, "", "needs"},
		{[]string{"relay", "policy", "set", "shop"}, `{"deny":["203.0.113.0/24"]}`, elsewhere, 0, "in force", ""},
		{[]string{"relay", "policy", "set", "shop"}, `{"dny":[]}`, elsewhere, 1, "", "dny"},
		{[]string{"relay", "policy", "explain", "shop", "203.0.113.9"}, "", elsewhere, 0, "refused at shop.relay.test by deny", ""},
		{[]string{"relay", "policy", "explain", "shop", "198.51.100.1"}, "", elsewhere, 0, "allowed at", ""},
		{[]string{"relay", "policy", "explain", "other", "198.51.100.1"}, "", elsewhere, 0, "allowed at other.relay.test: it has no rule about who may visit", ""},
		{[]string{"relay", "policy", "set", "shop"}, `{"basic_auth":[{"name":"ann","password":"opensesame"}]}`, elsewhere, 0, "in force", ""},
		{[]string{"relay", "policy", "explain", "shop", "198.51.100.1", "--user", "ann", "--password_file", "-"}, "opensesame\n", elsewhere, 0, "allowed at", ""},
		{[]string{"relay", "policy", "explain", "shop", "198.51.100.1", "--user", "ann", "--password_file", "-"}, "guess\n", elsewhere, 0, "refused at shop.relay.test by ", ""},
		{[]string{"relay", "policy", "explain", "shop", "198.51.100.1", "--password_file", "/no/such/file"}, "", elsewhere, 1, "", "no such file"},
		{[]string{"relay", "policy", "explain", "shop", "198.51.100.1", "--at", "tomorrow"}, "", elsewhere, 1, "", "time"},
		{[]string{"relay", "policy", "delete", "shop"}, "", elsewhere, 0, "deleted", ""},
		{[]string{"relay", "policy", "show", "shop"}, "", elsewhere, 1, "", "no policy is set for shop.relay.test; `adit relay policy list` shows them"},
		{[]string{"relay", "status"}, "", elsewhere, 0, "relay.test", ""},
		{[]string{"relay", "access", "--json"}, "", elsewhere, 0, `"items"`, ""},
		{[]string{"relay", "access", "--since", "24h", "--until", "2026-11-01"}, "", elsewhere, 0, "has no matching entries", ""},
		{[]string{"relay", "access", "--since", "yesterday"}, "", elsewhere, 2, "", "--since: \"yesterday\" is not a time such as 2026-11-01T00:00:00Z, a date such as 2026-11-01, or a duration before now such as 24h"},
		{[]string{"relay", "client", "list", "--config", file}, "", nil, 0, "shop", ""},
		{[]string{"relay", "client", "list", "--config", filepath.Join(t.TempDir(), "none.toml")}, "", nil, 1, "", "none.toml"},
		{[]string{"relay", "backup", backup}, "", elsewhere, 0, "private keys", ""},
		{[]string{"relay", "backup"}, "", elsewhere, 2, "", "needs"},
		{[]string{"relay", "restore", backup, "--data_dir", cfg.DataDir}, "", nil, 1, "", "not empty"},
		{[]string{"relay", "restore", backup, "--data_dir", restored}, "", nil, 0, "Restored 2 clients", ""},
		{[]string{"relay", "restore", backup, "--data_dir", restored}, "", nil, 1, "", "not empty"},
		{[]string{"relay", "client", "revoke", "shop"}, "", elsewhere, 0, "revoked", ""},
		{[]string{"relay", "client", "list", "--data_dir", t.TempDir()}, "", nil, 1, "", "no relay is running"},
		{[]string{"relay", "client", "list"}, "", map[string]string{"ADIT_RELAY_ADMIN_URL": elsewhere["ADIT_RELAY_ADMIN_URL"], "ADIT_RELAY_ADMIN_TOKEN": "x"}, 1, "", "admin token"},
		{[]string{"relay", "client", "list"}, "", map[string]string{"ADIT_RELAY_ADMIN_URL": "http://127.0.0.1:1", "ADIT_RELAY_ADMIN_TOKEN": "x"}, 1, "", "the relay does not answer at http://127.0.0.1:1; is it running? (dial tcp 127.0.0.1:1"},
		{[]string{"relay", "start", "--domain", "a b", "--data_dir", t.TempDir()}, "", nil, 1, "", "domain: "},
		{[]string{"relay", "start", "--domain", "a.test", "--data_dir", t.TempDir(), "--public-https-port", "70000"}, "", nil, 1, "", "public_https_port: "},
		{[]string{"relay", "start", "--domian", "a"}, "", nil, 2, "", "domian"},
	} {
		var out, errs bytes.Buffer
		env := &Env{In: strings.NewReader(c.in), Out: &out, Err: &errs, Getenv: func(name string) string { return c.env[name] }}
		code := Run(ctx, env, c.args)
		if code != c.code || !strings.Contains(out.String(), c.stdout) || !strings.Contains(errs.String(), c.stderr) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", c.args, code, out.String(), errs.String())
		}
		if strings.Contains(strings.Join(c.args, " "), "--json") && code == 0 && !json.Valid(out.Bytes()) {
			t.Errorf("%v: not one JSON document: %s", c.args, out.String())
		}
	}
}

// TestRelayConfigurationThatIsAtFaultIsNamed holds that an operator reads where
// the value is that cannot be used: in a file, which may be the one that was found
// without asking, or in a flag above it.
func TestRelayConfigurationThatIsAtFaultIsNamed(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ADIT_STATE_DIR", t.TempDir())
	t.Setenv("ADIT_CONFIG_DIR", dir)
	file := filepath.Join(dir, "relay.toml")
	for _, c := range []struct {
		text string
		args []string
		want string
	}{
		{`domain = "https://a.test"`, nil, "adit: " + file + ": domain: "},
		{`domain = "a.test"`, []string{"--domain", "a b"}, "adit: domain: "},
		{"domain = \"a.test\"\ntrusted_proxies = [\"nginx\"]", nil, "adit: " + file + ": trusted_proxies[0]: "},
		{`domain = "a.test"`, []string{"--trusted_proxies", "nginx"}, "adit: trusted_proxies[0]: "},
		{"domain = \"a.test\"\n[limits]\nidle_time = \"60\"", []string{"--config", file}, "adit: " + file + ": limits.idle_time: "},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		env := &Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
		if code := Run(t.Context(), env, append([]string{"relay", "start"}, c.args...)); code != 1 || !strings.HasPrefix(errs.String(), c.want) {
			t.Errorf("%q %v: exit code %d, %q, want %q", c.text, c.args, code, errs.String(), c.want)
		}
	}
}

// TestRelayFolderIsNamedOnce has the usual folder be the configured one too.
func TestRelayFolderIsNamedOnce(t *testing.T) {
	state := t.TempDir()
	t.Setenv("ADIT_STATE_DIR", state)
	t.Setenv("ADIT_CONFIG_DIR", t.TempDir())
	var out, errs bytes.Buffer
	env := &Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
	if code := Run(t.Context(), env, []string{"relay", "client", "list"}); code != 1 {
		t.Errorf("got exit code %d, want 1", code)
	}
	if n := strings.Count(errs.String(), filepath.Join(state, "relay")); n != 1 {
		t.Errorf("the folder is named %d times: %s", n, errs.String())
	}
}

// TestBrokenAuditLogIsFound alters an exported log.
func TestBrokenAuditLogIsFound(t *testing.T) {
	var text []byte
	seq, head := uint64(0), audit.Root
	for range 3 {
		e, err := audit.Next(seq, head, time.Now(), audit.Change{Action: "client.add", Target: "shop"})
		if err != nil {
			t.Fatal(err)
		}
		line, _ := json.Marshal(e)
		text = append(append(text, line...), '\n')
		seq, head = e.Seq, e.Hash
	}
	for name, c := range map[string]struct {
		text string
		code int
		says string
	}{
		"whole":   {string(text), 0, "3 entries"},
		"altered": {strings.Replace(string(text), "shop", "shed", 1), 1, "broken at entry 1"},
		"no JSON": {string(text) + "x\n", 1, "broken at entry 4"},
	} {
		file := filepath.Join(t.TempDir(), "audit.ndjson")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		env := &Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
		if code := Run(t.Context(), env, []string{"relay", "audit", "verify", file}); code != c.code || !strings.Contains(out.String()+errs.String(), c.says) {
			t.Errorf("%s: exit %d, %s%s", name, code, out.String(), errs.String())
		}
	}
}
