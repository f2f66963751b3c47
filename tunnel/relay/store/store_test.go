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

func nobodyAway(string, Holder) bool { return false }
func allAway(string, Holder) bool    { return true }

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

func TestClaims(t *testing.T) {
	holder := func(instance, key, mode string) Holder {
		return Holder{Slot: SlotTLS, Instance: instance, Key: key, Type: "https", Mode: mode}
	}
	plain := holder("i1", "k2", "standard")
	plain.Slot = SlotPlain
	ephemeral := holder("i1", "k1", "standard")
	ephemeral.Ephemeral = true
	type attempt struct {
		client string
		holder Holder
		away   func(string, Holder) bool
		want   error
	}
	for _, c := range []struct {
		name     string
		attempts []attempt
		holders  int
	}{
		{"again by itself", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i1", "k1", "standard"), nobodyAway, nil}}, 1},
		{"by another client", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c2", holder("i2", "k1", "standard"), allAway, ErrTaken}}, 1},
		{"by another agent of the client", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i2", "k1", "standard"), nobodyAway, ErrTakenByOwn}}, 1},
		{"after that agent is away", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i2", "k1", "standard"), allAway, nil}}, 1},
		{"balanced joins", []attempt{{"c1", holder("i1", "k1", "balanced"), nobodyAway, nil}, {"c1", holder("i2", "k1", "balanced"), nobodyAway, nil}}, 2},
		{"balanced of another client", []attempt{{"c1", holder("i1", "k1", "balanced"), nobodyAway, nil}, {"c2", holder("i2", "k1", "balanced"), nobodyAway, ErrTaken}}, 1},
		{"modes do not mix", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", holder("i2", "k1", "balanced"), nobodyAway, ErrMode}}, 1},
		{"the other slot is free", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c1", plain, nobodyAway, nil}}, 2},
		{"the other slot of another client", []attempt{{"c1", holder("i1", "k1", "standard"), nobodyAway, nil}, {"c2", plain, nobodyAway, ErrTaken}}, 1},
		{"a forgotten ephemeral", []attempt{{"c1", ephemeral, nobodyAway, nil}, {"c2", holder("i2", "k1", "standard"), allAway, nil}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s := open(t, dir)
			target := TargetDomain("shop.example.com")
			for i, a := range c.attempts {
				if _, err := s.Claims.Take(t.Context(), target, a.client, a.holder, a.away); !errors.Is(err, a.want) {
					t.Errorf("attempt %d: got %v, want %v", i, err, a.want)
				}
			}
			s.Close()
			s = open(t, dir)
			got, ok := s.Claims.Get(target)
			if !ok || len(got.Holders) != c.holders {
				t.Errorf("after a restart: got %+v, want %d holders", got, c.holders)
			}
			if err := s.Claims.ReleaseClient(t.Context(), got.ClientID); err != nil {
				t.Fatal(err)
			}
			if _, ok := s.Claims.Get(target); ok {
				t.Error("it is still held after its release")
			}
			if _, err := s.Claims.Take(t.Context(), target, "c9", holder("i9", "k9", "standard"), nobodyAway); err != nil {
				t.Errorf("after its release: %v", err)
			}
		})
	}
}

func TestOneNameHasOneOwnerUnderRace(t *testing.T) {
	s := open(t, t.TempDir())
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 16 {
		wg.Go(func() {
			h := Holder{Slot: SlotPort, Instance: fmt.Sprint(i), Key: "k", Mode: "standard"}
			if _, err := s.Claims.Take(t.Context(), TargetPort("tcp", 20000), fmt.Sprint("c", i), h, nobodyAway); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d got the port, want 1", won)
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

// TestWriteReturnsWhenAllHaveHeard holds that a change is in force when the
// command that made it ends, whether the write or the watch brought it first.
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

// TestAcknowledgedClaimsLiveThroughKill kills a process that writes claims, and
// looks for each that it had reported.
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
		target := TargetDomain(newID("d"))
		if _, err := s.Claims.Take(context.Background(), target, "c", Holder{Slot: SlotTLS, Key: "k"}, nobodyAway); err != nil {
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
