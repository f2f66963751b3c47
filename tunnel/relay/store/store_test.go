package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/engine"
)

func open(tb testing.TB, dir string) *Store {
	tb.Helper()
	s, err := Open(tb.Context(), Config{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func secret() (s [32]byte) {
	rand.Read(s[:])
	return s
}

func nobodyAway(string, claims.Holder) bool { return false }

func TestClientsLiveThroughRestart(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir)
	first, second := secret(), secret()
	if _, err := s.Clients.Add(ctx, "Shop", first, "hint"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clients.Add(ctx, "shop", second, ""); !errors.Is(err, bucket.ErrExists) {
		t.Errorf("a second client of the name: got %v, want ErrExists", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	now := time.Now()
	c, ok := s.Clients.Authenticate(first[:], now)
	if !ok || c.Name != "shop" {
		t.Fatalf("after a restart: got %+v, %v", c, ok)
	}
	if _, ok := s.Clients.Authenticate(second[:], now); ok {
		t.Error("a secret that was never stored is let in")
	}
	if _, err := s.Clients.Rotate(ctx, "shop", second, "", time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		secret [32]byte
		at     time.Time
		want   bool
	}{
		{"old within the overlap", first, now, true},
		{"old after it", first, now.Add(2 * time.Hour), false},
		{"new within", second, now, true},
		{"new after", second, now.Add(1000 * time.Hour), true},
	} {
		if _, ok := s.Clients.Authenticate(c.secret[:], c.at); ok != c.want {
			t.Errorf("%s: got %v, want %v", c.name, ok, c.want)
		}
	}
	var seen Client
	s.Clients.OnChange(func(c Client) { seen = c })
	if _, err := s.Clients.Revoke(ctx, "shop"); err != nil {
		t.Fatal(err)
	}
	if seen.Active() {
		t.Error("nobody was told of the revocation")
	}
	if _, ok := s.Clients.Authenticate(second[:], now); ok {
		t.Error("a revoked client is let in")
	}
	again, err := s.Clients.Add(ctx, "shop", first, "")
	if err != nil || again.ID == c.ID {
		t.Errorf("the name again: got %+v, %v; want a new client", again, err)
	}
	if _, err := s.Clients.Revoke(ctx, "nobody"); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
}

func TestClientNames(t *testing.T) {
	s := open(t, t.TempDir())
	for _, name := range []string{"", "-a", "a-", "a..b", "a b", "a/b", "ä", "*", ">", string(make([]byte, 64))} {
		if _, err := s.Clients.Add(t.Context(), name, secret(), ""); !errors.Is(err, ErrName) {
			t.Errorf("%q: got %v, want ErrName", name, err)
		}
	}
}

func TestPoliciesAndSettings(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	s := open(t, dir)
	var told []string
	s.Policies.OnValues(func(target string, _ StoredPolicy, exists bool) { told = append(told, fmt.Sprint(target, exists)) })
	if err := s.Policies.Set(ctx, "domain.a", []byte(`{"x":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Policies.Delete(ctx, "domain.a"); err != nil {
		t.Fatal(err)
	}
	if err := s.Policies.Delete(ctx, "domain.a"); !errors.Is(err, bucket.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if len(told) < 2 || told[0] != "domain.a true" && told[0] != "domain.atrue" {
		t.Errorf("told of %v", told)
	}
	made := 0
	for range 2 {
		v, err := s.Settings.Once(ctx, "x", func() ([]byte, error) { made++; return []byte{byte(made)}, nil })
		if err != nil || v[0] != 1 {
			t.Errorf("got %v, %v; want the first value", v, err)
		}
	}
	if err := s.Settings.Put(ctx, settingSchema, []byte("99")); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := Open(ctx, Config{Dir: dir}); err == nil {
		t.Error("a store of a newer schema was opened")
	}
}

// TestWriteReturnsWhenAllHaveHeard checks that a change is in force when the command that made
// it returns, whether the write or the watch brought it first.
func TestWriteReturnsWhenAllHaveHeard(t *testing.T) {
	s := open(t, t.TempDir())
	var mu sync.Mutex
	heard := ""
	s.Policies.OnValues(func(_ string, v StoredPolicy, exists bool) {
		mu.Lock()
		defer mu.Unlock()
		heard = string(v.Document)
	})
	for i := range 500 {
		want := fmt.Sprint(i)
		if err := s.Policies.Set(t.Context(), "domain.a", []byte(want)); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		got := heard
		mu.Unlock()
		if got != want {
			t.Fatalf("after the write of %s: heard of %q", want, got)
		}
	}
}

func TestSecondRelayIsRefusedTheFolder(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if _, err := Open(t.Context(), Config{Dir: dir}); !errors.Is(err, engine.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
}

// TestAcknowledgedClaimsLiveThroughKill kills a process that writes claims, and looks for
// every claim that it reported as written.
func TestAcknowledgedClaimsLiveThroughKill(t *testing.T) {
	if dir := os.Getenv("ADIT_STORE_WRITER"); dir != "" {
		writeUntilKilled(dir)
		return
	}
	dir := t.TempDir()
	total := 0
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestAcknowledgedClaimsLiveThroughKill$")
		cmd.Env = append(os.Environ(), "ADIT_STORE_WRITER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var acknowledged []string
		for lines.Scan() {
			acknowledged = append(acknowledged, lines.Text())
			if len(acknowledged) == 20+7*round {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		if len(acknowledged) < 20 {
			t.Fatalf("the writer ended by itself: %q", acknowledged)
		}
		if round == 2 { // a write torn by a power loss: what follows the last synced byte is rubbish
			tear(t, dir)
		}
		s := open(t, dir)
		for _, target := range acknowledged[:len(acknowledged)-1] {
			if _, ok := s.Claims.Get(target); !ok {
				t.Errorf("round %d: %s was acknowledged and is gone", round, target)
			}
		}
		if n := len(s.Claims.List()); n < total {
			t.Errorf("round %d: %d claims, had %d", round, n, total)
		} else {
			total = n
		}
		s.Close()
	}
}

func writeUntilKilled(dir string) {
	s, err := Open(context.Background(), Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		target := claims.TargetDomain(newID("d"))
		if _, err := s.Claims.Take(context.Background(), target, "c", claims.Holder{Slot: claims.SlotTLS, Key: "k"}, nobodyAway); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(target)
	}
}

// tear appends half a record to the newest block of the claims.
func tear(t *testing.T, dir string) {
	blocks, err := filepath.Glob(filepath.Join(dir, "nats", "jetstream", "*", "streams", "KV_adit_claims", "msgs", "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("no blocks of the claims: %v", err)
	}
	f, err := os.OpenFile(blocks[len(blocks)-1], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(bytes.Repeat([]byte{0x5a}, 37)); err != nil {
		t.Fatal(err)
	}
}
