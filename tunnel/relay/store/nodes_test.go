package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/relay/store/seal"
)

// TestNodesSeeEachOther checks that other nodes see an entry, and that it disappears when it
// is removed or no longer renewed.
func TestNodesSeeEachOther(t *testing.T) {
	urls := []string{natstest.Start(t).URL()}
	a, b := openAt(t, Config{URLs: urls}), openAt(t, Config{URLs: urls})
	if err := a.Nodes.Renew(t.Context(), Node{ID: "n_a", Sessions: 1}); err != nil {
		t.Fatal(err)
	}
	if err := b.Nodes.Renew(t.Context(), Node{ID: "n_b"}); err != nil {
		t.Fatal(err)
	}
	sees := func(s *Store, id string) func() bool {
		return func() bool { _, ok := s.Nodes.Get(id); return ok }
	}
	eventually(t, "b sees a", sees(b, "n_a"))
	eventually(t, "a sees b", sees(a, "n_b"))
	if err := a.Nodes.Renew(t.Context(), Node{ID: "n_a", Sessions: 2}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b sees a's figures", func() bool { v, _ := b.Nodes.Get("n_a"); return v.Sessions == 2 })
	if err := a.Nodes.Leave(t.Context(), "n_a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a has left", func() bool { return !sees(b, "n_a")() })
	eventually(t, "b was not heard of", func() bool { return !sees(a, "n_b")() })
	if s := openAt(t, Config{}); s.Nodes != nil {
		t.Error("an embedded store lists nodes")
	}
}

// TestWatchesResumeAtOnce restarts the server of two relays, and stops one of the three
// servers of a cluster. What one relay then writes, the other sees at once.
func TestWatchesResumeAtOnce(t *testing.T) {
	change := func(t *testing.T, a, b *Store, document string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for a.Policies.Set(ctx, "domain.a", []byte(document)) != nil {
			if ctx.Err() != nil {
				t.Fatal("no write was acknowledged")
			}
			time.Sleep(50 * time.Millisecond)
		}
		// eventually tells how long it took: without a reread at the reconnection
		// it is 10 to 20 s.
		eventually(t, "the other relay sees the change", func() bool {
			p, _ := b.Policies.Get("domain.a")
			return string(p.Document) == document
		})
	}
	t.Run("one server restarts", func(t *testing.T) {
		ns := natstest.Start(t)
		cfg := Config{URLs: []string{ns.URL()}}
		a, b := openAt(t, cfg), openAt(t, cfg)
		change(t, a, b, `{"x":1}`)
		ns.Stop()
		eventually(t, "both notice", func() bool { return !a.Connected() && !b.Connected() })
		ns.Start()
		eventually(t, "both are back", func() bool { return a.Connected() && b.Connected() })
		change(t, a, b, `{"x":2}`)
	})
	t.Run("each of three ends", func(t *testing.T) {
		all := natstest.Cluster(t, 3)
		cfg := Config{URLs: natstest.URLs(all)}
		a, b := openAt(t, cfg), openAt(t, cfg)
		change(t, a, b, `{"x":1}`)
		for i, ns := range all {
			ns.Stop()
			change(t, a, b, fmt.Sprintf(`{"ended":%d}`, i))
			ns.Start()
			change(t, a, b, fmt.Sprintf(`{"back":%d}`, i))
		}
	})
}

// TestOpenWaitsForServersThatStart starts a relay at the same time as its cluster's servers.
// One of the three that are to keep its buckets comes last.
func TestOpenWaitsForServersThatStart(t *testing.T) {
	all := natstest.Cluster(t, 3)
	late := all[2]
	late.Stop()
	refused := func() (n uint64) {
		for _, ns := range all[:2] {
			n += ns.Refused()
		}
		return n
	}
	before := refused()
	opened := make(chan error, 1)
	cfg := Config{Dir: t.TempDir(), URLs: natstest.URLs(all[:2]), Replicas: 3}
	go func() {
		s, err := Open(t.Context(), cfg)
		if err == nil {
			s.Close()
		}
		opened <- err
	}()
	eventually(t, "the cluster has refused", func() bool { return refused() > before || len(opened) > 0 })
	late.Start()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

// errNoSecret is what a relay without a secret says of what is sealed.
var _, errNoSecret = (*seal.Seal)(nil).Open("", nil)

// TestPrivateKeysAreSealed checks that with a secret, nobody who reads the cluster obtains the
// keys, that all nodes need the same secret, and that the first node with a secret seals what
// was stored without one.
func TestPrivateKeysAreSealed(t *testing.T) {
	urls := []string{natstest.Start(t).URL()}
	make := func() ([]byte, error) { return []byte("-----BEGIN PRIVATE KEY"), nil }
	plain := openAt(t, Config{URLs: urls})
	if _, err := plain.Settings.Once(t.Context(), SettingAuthority, make); err != nil {
		t.Fatal(err)
	}
	stored := func(name string) string {
		e, err := plain.Settings.kv.Get(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return string(e.Value())
	}
	first := openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})
	for _, name := range []string{SettingAuthority, SettingVisitorCA} {
		for _, s := range []*Store{first, openAt(t, Config{URLs: urls, Secret: []byte("s3cret")})} {
			if v, err := s.Settings.Once(t.Context(), name, make); err != nil || string(v) != "-----BEGIN PRIVATE KEY" {
				t.Errorf("%s: %q, %v", name, v, err)
			}
		}
		if strings.Contains(stored(name), "PRIVATE") {
			t.Errorf("%s is stored as %q", name, stored(name))
		}
		if _, err := plain.Settings.Get(t.Context(), name); !errors.Is(err, errNoSecret) {
			t.Errorf("without the secret: %v", err)
		}
		if _, err := openAt(t, Config{URLs: urls, Secret: []byte("guess")}).Settings.Get(t.Context(), name); err == nil {
			t.Error("another secret opened it")
		}
	}
	if _, err := first.Settings.seal.Open(SettingVisitorCA, []byte(stored(SettingAuthority))); err == nil {
		t.Error("one setting passes for another")
	}
}

// TestRelayBeginsBesideWhoOnlyListens checks that a program that subscribes to everything in a
// NATS cluster is not taken for another node.
func TestRelayBeginsBesideWhoOnlyListens(t *testing.T) {
	t.Parallel() // most of it is waiting
	urls := []string{natstest.Start(t).URL()}
	listens, err := nats.Connect(urls[0])
	if err != nil {
		t.Fatal(err)
	}
	defer listens.Close()
	if _, err := listens.Subscribe(">", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := listens.Flush(); err != nil {
		t.Fatal(err)
	}
	openAt(t, Config{URLs: urls, Beginning: true})
}

// TestPolicyGoesWithItsClient changes the owner of a name.
func TestPolicyGoesWithItsClient(t *testing.T) {
	s := open(t, t.TempDir())
	target := claims.TargetDomain("shop.example.com")
	claim := func(client string) {
		t.Helper()
		if _, err := s.Claims.Take(t.Context(), target, client, claims.Holder{Slot: claims.SlotPlain, Instance: "i", Key: "k", Type: "http", Mode: "standard"}, nobodyAway); err != nil {
			t.Fatal(err)
		}
		if err := s.Policies.Claimed(t.Context(), target, client, false); err != nil {
			t.Fatal(err)
		}
	}
	owner := func() string { p, _ := s.Policies.Get(target); return p.ClientID }
	if err := s.Policies.Set(t.Context(), target, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	if claim("c1"); owner() != "c1" {
		t.Errorf("a policy that waited for its client is of %q", owner())
	}
	if err := s.Claims.Release(t.Context(), target, "c1", "i", "k"); err != nil {
		t.Fatal(err)
	}
	if claim("c1"); owner() != "c1" {
		t.Error("the policy did not wait for its client")
	}
	if err := s.Claims.Release(t.Context(), target, "c1", "i", "k"); err != nil {
		t.Fatal(err)
	}
	claim("c2")
	if _, ok := s.Policies.Get(target); ok {
		t.Error("the next owner has the policy of the one before")
	}
	if err := s.Policies.Set(t.Context(), target, []byte(`{}`)); err != nil || owner() != "c2" {
		t.Errorf("%v, of %q", err, owner())
	}
	if err := s.Policies.DropClient(t.Context(), "c2"); err != nil || len(s.Policies.List()) != 0 {
		t.Errorf("%v, left %v", err, s.Policies.List())
	}
}
