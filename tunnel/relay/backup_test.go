package relay

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/tunnel/relay/backup"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/datadir"
	"adit/tunnel/wire"
)

// backup asks a relay for its backup as the command does.
func (r *testRelay) backup(tb testing.TB) []byte {
	tb.Helper()
	status, body, _ := r.ask(tb, http.MethodGet, "/api/v1/backup", "", map[string]string{"Authorization": "Bearer " + r.AdminToken()})
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal([]byte(body), &envelope); err != nil || status != 200 {
		tb.Fatalf("status %d, %v", status, err)
	}
	return envelope.Data
}

func TestBackupBringsTheRelayBack(t *testing.T) {
	cfg := testConfig(t.TempDir())
	// The same ports are opened again after a moment: they must be none that the
	// system gives out to somebody else meanwhile.
	ports, err := config.ParsePorts(cfg.TCPPorts)
	if err != nil {
		t.Fatal(err)
	}
	cfg.TCPPorts = fmt.Sprintf("%d-%d", ports.First, ports.Last-3)
	for i, addr := range []*string{&cfg.TunnelListen, &cfg.EdgeHTTPListen, &cfg.EdgeHTTPSListen} {
		*addr = fmt.Sprintf("127.0.0.1:%d", ports.Last-i)
	}
	cfg.UDPPorts = "none"
	s := startSite(t, cfg, text("hello"))
	port := s.agent.mustClaim("port", wire.Claim{Type: wire.TypeTCP}, "")
	s.setPolicy(t, "shop", `{"deny":["203.0.113.9"],"basic_auth":[{"name":"ann","password":"p"}]}`)
	document, admin, ca := s.backup(t), s.AdminToken(), string(s.local.CA())
	for _, secret := range []string{s.token.Reveal(), `"password":"p"`} {
		if strings.Contains(string(document), secret) {
			t.Errorf("the backup holds %q", secret)
		}
	}
	if _, err := backup.Restore(t.Context(), cfg, document); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("into a folder in use: %v", err)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = filepath.Join(t.TempDir(), "new", "relay")
	got, err := backup.Restore(t.Context(), cfg, document)
	if err != nil || got.Clients != 1 || got.Claims != 2 || got.Policies != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if info, err := os.Stat(filepath.Join(cfg.DataDir, datadir.AdminTokenFile)); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the admin token's file: %v, %v", info, err)
	}
	r := startRelay(t, cfg)
	if r.AdminToken() != admin || string(r.local.CA()) != ca {
		t.Error("the admin token or the visitors' authority is another")
	}
	a := connect(t, s.token, "i1")
	origin := startOrigin(t, text("again"))
	if g := a.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, origin); g.PublicURL != s.http {
		t.Errorf("got %s, had %s", g.PublicURL, s.http)
	}
	if g := a.mustClaim("port", wire.Claim{Type: wire.TypeTCP}, origin); g.PublicURL != port.PublicURL {
		t.Errorf("got %s, had %s", g.PublicURL, port.PublicURL)
	}
	if status, _ := get(t, r.visitor(t), s.http); status != 401 {
		t.Errorf("the policy is not in force: status %d", status)
	}
	other := connect(t, r.client(t, "other"), "i2")
	_, err = other.claim("k", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, "")
	problem(t, err, wire.CodeTaken)
}

func TestBackupIsForTheOperatorAlone(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	if status, body, _ := r.ask(t, http.MethodGet, "/api/v1/backup", "", nil); status != 401 || strings.Contains(body, "settings") {
		t.Errorf("without the token: status %d", status)
	}
}
