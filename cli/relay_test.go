package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay"
)

// TestRelayCommands speaks to a running relay that is found by its data folder,
// and then by the environment.
func TestRelayCommands(t *testing.T) {
	cfg := relay.Defaults()
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
	backup, restored := filepath.Join(t.TempDir(), "backup.json"), filepath.Join(t.TempDir(), "restored")
	elsewhere := map[string]string{envAdminURL: "http://" + r.Addrs().Console, envAdminToken: r.AdminToken()}
	here := []string{"--data_dir", cfg.DataDir}
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
		{[]string{"relay", "client", "rotate", "shop", "--overlap", "1h"}, "", elsewhere, 0, "adit_", "1h0m0s"},
		{[]string{"relay", "client", "revoke", "nobody"}, "", elsewhere, 1, "", "no client named nobody"},
		{[]string{"relay", "client", "add"}, "", elsewhere, 2, "", "needs"},
		{[]string{"relay", "policy", "set", "shop"}, `{"deny":["203.0.113.0/24"]}`, elsewhere, 0, "in force", ""},
		{[]string{"relay", "policy", "set", "shop"}, `{"dny":[]}`, elsewhere, 1, "", "dny"},
		{[]string{"relay", "policy", "explain", "shop", "203.0.113.9"}, "", elsewhere, 0, "refused at shop.relay.test by deny", ""},
		{[]string{"relay", "policy", "explain", "shop", "198.51.100.1"}, "", elsewhere, 0, "let in", ""},
		{[]string{"relay", "policy", "delete", "shop"}, "", elsewhere, 0, "deleted", ""},
		{[]string{"relay", "status"}, "", elsewhere, 0, "relay.test", ""},
		{[]string{"relay", "access", "--json"}, "", elsewhere, 0, `"items"`, ""},
		{[]string{"relay", "backup", backup}, "", elsewhere, 0, "private keys", ""},
		{[]string{"relay", "backup"}, "", elsewhere, 2, "", "needs"},
		{[]string{"relay", "restore", backup, "--data_dir", cfg.DataDir}, "", nil, 1, "", "not empty"},
		{[]string{"relay", "restore", backup, "--data_dir", restored}, "", nil, 0, "Restored 1 clients", ""},
		{[]string{"relay", "restore", backup, "--data_dir", restored}, "", nil, 1, "", "not empty"},
		{[]string{"relay", "client", "revoke", "shop"}, "", elsewhere, 0, "revoked", ""},
		{[]string{"relay", "client", "list", "--data_dir", t.TempDir()}, "", nil, 1, "", "no relay runs"},
		{[]string{"relay", "client", "list"}, "", map[string]string{envAdminURL: elsewhere[envAdminURL], envAdminToken: "x"}, 1, "", "admin token"},
		{[]string{"relay", "start", "--domain", "a b", "--data_dir", t.TempDir()}, "", nil, 1, "", "domain: "},
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
