package relay

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"adit/tunnel/relay/backup"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// TestStoreThatWasEmptiedFoundsNoOtherRelay makes a node find its relay's store empty. A
// new relay in its place would know no tokens, and would let everybody in.
func TestStoreThatWasEmptiedFoundsNoOtherRelay(t *testing.T) {
	t.Parallel() // most of it is waiting
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

// TestNodeBeginsNoRelayBesideOthers makes NATS lose everything while one node runs, and
// starts another one in an empty folder. It must not found a relay that no token leads
// to.
func TestNodeBeginsNoRelayBesideOthers(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	c := &testNodes{tb: t, dir: t.TempDir(), urls: []string{server.URL()}}
	first := c.add()
	token := first.client(t, "shop")
	a := connect(t, token, "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("hello")))
	document := first.backup(t)
	server.Empty()
	eventually(t, "the node is back at NATS", first.store.Connected)
	if another, err := New(Options{Config: c.config(1)}); err == nil {
		another.Close()
		t.Fatal("it began another relay")
	} else if !strings.Contains(err.Error(), "adit relay restore") {
		t.Errorf("got %v", err)
	}
	everywhere(t, c.all, &http.Client{Transport: &http.Transport{}}, "shop.relay.test", "hello")
	eventually(t, "the node says that the store is lost", func() bool { return first.store.Condition() == store.Lost })
	if _, err := backup.Restore(t.Context(), c.config(2), document); err != nil {
		t.Fatal(err)
	}
	second := c.add()
	c.awaitWhole(c.all...)
	everywhere(t, c.all, &http.Client{Transport: &http.Transport{}}, "shop.relay.test", "hello")
	if first.store.Condition() != store.Lost || second.store.Condition() != store.Here {
		t.Errorf("after a restore: got %s and %s, want that the node that ran is to be restarted", first.store.Condition(), second.store.Condition())
	}
	connect(t, second.at(token), "i2").mustClaim("k", wire.Claim{Type: wire.TypeHTTP}, "")
}

// TestNodesBeginARelayTogether starts several nodes at once where there is no relay yet.
func TestNodesBeginARelayTogether(t *testing.T) {
	c := &testNodes{tb: t, dir: t.TempDir(), urls: []string{natstest.Start(t).URL()}}
	var begun sync.WaitGroup
	all := make([]*Relay, 4)
	for i := range all {
		cfg := testConfig(filepath.Join(c.dir, fmt.Sprint(i)))
		cfg.NATS.URLs, cfg.Nodes.Listen = c.urls, "127.0.0.1:0"
		begun.Go(func() {
			r, err := New(Options{Config: cfg})
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = r
		})
	}
	begun.Wait()
	for _, r := range all {
		if r == nil {
			continue
		}
		if r.authority.Fingerprint() != all[0].authority.Fingerprint() {
			t.Error("two nodes have begun two relays")
		}
		r.Close()
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
