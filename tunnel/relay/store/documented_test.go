package store

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"adit/internal/freeport"
	"adit/tunnel/relay/store/natstest"
)

// TestDocumentedServers runs three NATS servers with the configuration from the operators'
// documentation, and opens a store on them as described there.
func TestDocumentedServers(t *testing.T) {
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```conf\n(.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("the document has no configuration of a NATS server")
	}
	dir := t.TempDir()
	files := serverFiles(t, dir)
	here := []string{"/etc/nats/", dir + "/", "/var/lib/nats", filepath.Join(dir, "NAME")}
	var urls []string
	for n := 1; n <= 3; n++ {
		port := freeport.Get(t)
		urls = append(urls, fmt.Sprintf("tls://127.0.0.1:%d", port))
		here = append(here, fmt.Sprintf("10.0.0.1%d:4222", n), fmt.Sprintf("127.0.0.1:%d", port),
			fmt.Sprintf("10.0.0.1%d:6222", n), fmt.Sprintf("127.0.0.1:%d", freeport.Get(t)))
	}
	for n := 1; n <= 3; n++ {
		name := fmt.Sprintf("n%d", n)
		// What is the first's own: its name, where it listens, and its disk.
		config := strings.NewReplacer("server_name: n1", "server_name: "+name,
			`listen: "10.0.0.11:`, fmt.Sprintf(`listen: "10.0.0.1%d:`, n)).Replace(string(block[1]))
		config = strings.NewReplacer(here...).Replace(config)
		file := filepath.Join(dir, name+".conf")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "NAME", name)), 0o600); err != nil {
			t.Fatal(err)
		}
		startByFile(t, file)
	}
	s := openAt(t, Config{URLs: urls, CA: files["ca.pem"], Cert: files["client.pem"], Key: files["client.key"]})
	if _, err := s.Clients.Add(t.Context(), "laptop", [32]byte{1}, "hint"); err != nil {
		t.Error("a change in a store on those servers:", err)
	}
	info, err := s.engine.JetStream().Stream(t.Context(), "KV_adit_clients")
	if err != nil {
		t.Fatal(err)
	}
	if got := info.CachedInfo().Config.Replicas; got != 3 {
		t.Errorf("each client is kept %d times, want 3", got)
	}
	if _, err := Open(t.Context(), Config{Dir: t.TempDir(), URLs: urls, CA: files["ca.pem"]}); err == nil {
		t.Error("a relay without a certificate was let in")
	}
}

// startByFile runs a server by its configuration file until the test ends.
func startByFile(t *testing.T, file string) {
	t.Helper()
	opts, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !opts.SyncAlways {
		t.Error("the servers answer for a change before it is on the disk")
	}
	opts.NoSigs, opts.NoLog = true, true
	ns, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	ns.Start()
	t.Cleanup(func() { stopNATS(ns) })
	if !ns.ReadyForConnections(natstest.Ready) {
		t.Fatal("the server did not start")
	}
}
