package relay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/tunnel/relay/backup"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// TestStoreThatWasEmptiedFoundsNoOtherRelay has a node find nothing where its relay's
// store was: a new relay in its place would know no token, and let everybody in.
func TestStoreThatWasEmptiedFoundsNoOtherRelay(t *testing.T) {
	for name, emptied := range map[string]func(t *testing.T, r *testRelay){
		"in its folder":  func(t *testing.T, r *testRelay) { remove(t, filepath.Join(r.cfg.DataDir, "nats")) },
		"in the cluster": func(t *testing.T, r *testRelay) { r.cfg.NATS.URLs = []string{natstest.Start(t).URL()} },
		"of half a folder": func(t *testing.T, r *testRelay) {
			remove(t, filepath.Join(r.cfg.DataDir, "nats", "jetstream", "$G", "streams", "KV_adit_settings"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t.TempDir())
			if name == "in the cluster" {
				cfg.NATS.URLs = []string{natstest.Start(t).URL()}
			}
			r := startRelay(t, cfg)
			document := r.backup(t)
			if err := r.stop(); err != nil {
				t.Fatal(err)
			}
			emptied(t, r)
			for range 2 { // the first has left nothing that lets the second in
				if again, err := New(Options{Config: r.cfg}); err == nil {
					again.Close()
					t.Fatal("it began a new relay")
				} else if !strings.Contains(err.Error(), "adit relay restore") {
					t.Errorf("got %v", err)
				}
			}
			remove(t, r.cfg.DataDir)
			if _, err := backup.Restore(t.Context(), r.cfg, document); err != nil {
				t.Fatal(err)
			}
			connect(t, startRelay(t, r.cfg).client(t, "shop"), "i1").mustClaim("k", wire.Claim{Type: wire.TypeHTTP}, "")
		})
	}
}

func remove(t *testing.T, folder string) {
	t.Helper()
	if _, err := os.Stat(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
}
