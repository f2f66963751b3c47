package store

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/inventory"
)

// used is a data folder of a relay that had two clients, of which one was removed, and a policy.
func used(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s, err := Open(t.Context(), Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"shop", "lamp"} {
		if _, err := s.Clients.Add(t.Context(), name, secret(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Policies.Set(t.Context(), "domain.shop.example.com", []byte(`{"basic_auth":[]}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Policies.Set(t.Context(), "tcp.20001", []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := s.Policies.Set(t.Context(), "tcp.20001", []byte(`{"a":2}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Clients.Revoke(t.Context(), "lamp"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestDamagedStoreIsNotOpened matters because everybody is admitted where a policy has been
// lost.
func TestDamagedStoreIsNotOpened(t *testing.T) {
	for _, c := range []struct {
		name, table string
		harm        func(t *testing.T, msgs string)
		want        []string
	}{
		{"policies gone", "policies", removeAll, []string{"the policy of shop.example.com is gone", "the policy of tcp.20001 is gone"}},
		{"policies cut short", "policies", cutShort, []string{"the policy of tcp.20001 is older than it was"}},
		{"policies zeroed", "policies", zero, []string{"the policy of shop.example.com is gone"}},
		{"clients gone", "clients", removeAll, []string{"the client shop is gone"}},
		// The last that was written is that lamp was revoked.
		{"clients cut short", "clients", cutShort, []string{"the client lamp is older than it was"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := used(t)
			c.harm(t, filepath.Join(dir, "nats", "jetstream", "$G", "streams", "KV_adit_"+c.table, "msgs"))
			s, err := Open(t.Context(), Config{Dir: dir})
			if err == nil {
				s.Close()
				t.Fatal("the store was opened")
			}
			for _, want := range append(c.want, "adit relay restore", filepath.Join(dir, inventory.File)) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %q, want %q in it", err, want)
				}
			}
			if err := os.Remove(filepath.Join(dir, inventory.File)); err != nil {
				t.Fatal(err)
			}
			open(t, dir).Close() // with what is left
			open(t, dir)
		})
	}
}

// TestKilledStoreIsNotTakenForDamaged kills a process that sets and removes policies, before
// and after it has listed them.
func TestKilledStoreIsNotTakenForDamaged(t *testing.T) {
	if dir := os.Getenv("ADIT_STORE_CHANGER"); dir != "" {
		changeUntilKilled(dir)
		return
	}
	dir := t.TempDir()
	listed := time.Time{}
	for round := range 4 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledStoreIsNotTakenForDamaged$")
		cmd.Env = append(os.Environ(), "ADIT_STORE_CHANGER="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		changes := 0
		for lines := bufio.NewScanner(out); lines.Scan(); {
			changes++
			info, err := os.Stat(filepath.Join(dir, inventory.File))
			again := err == nil && info.ModTime().After(listed)
			if changes > 30+11*round && (again || round%2 == 0) {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()
		if changes < 30 {
			t.Fatalf("the writer ended by itself after %d changes", changes)
		}
		open(t, dir).Close()
		info, err := os.Stat(filepath.Join(dir, inventory.File))
		if err != nil {
			t.Fatal(err)
		}
		listed = info.ModTime()
	}
}

func changeUntilKilled(dir string) {
	s, err := Open(context.Background(), Config{Dir: dir})
	for n := 0; err == nil; n++ {
		target := claims.TargetPort("tcp", 20000+n%7)
		if n%3 == 2 {
			target = claims.TargetPort("tcp", 20000+(n-2)%7)
			err = s.Policies.Delete(context.Background(), target)
		} else {
			err = s.Policies.Set(context.Background(), target, []byte(`{}`))
		}
		fmt.Println(n)
	}
	fmt.Println(err)
}

// TestStoreThatCannotBeReadSaysSo has a value that the server cannot read past, without
// reporting that.
func TestStoreThatCannotBeReadSaysSo(t *testing.T) {
	dir := used(t)
	path := lastBlock(t, filepath.Join(dir, "nats", "jetstream", "$G", "streams", "KV_adit_policies", "msgs"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copy(data[60:], "????")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // or as long as the engine has patience
	defer cancel()
	s, err := Open(ctx, Config{Dir: dir})
	if err == nil {
		s.Close()
		t.Fatal("the store was opened")
	}
	for _, want := range []string{"policies", dir, "damaged", "adit relay restore"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
}

func removeAll(t *testing.T, msgs string) {
	t.Helper()
	if err := os.RemoveAll(msgs); err != nil {
		t.Fatal(err)
	}
}

// cutShort takes the end of the last write away, as a disk does that said too early that
// it had it.
func cutShort(t *testing.T, msgs string) {
	t.Helper()
	path := lastBlock(t, msgs)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()-20); err != nil {
		t.Fatal(err)
	}
}

// zero is what some file systems leave after the power went.
func zero(t *testing.T, msgs string) {
	t.Helper()
	path := lastBlock(t, msgs)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, make([]byte, info.Size()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func lastBlock(t *testing.T, msgs string) string {
	t.Helper()
	blocks, err := filepath.Glob(filepath.Join(msgs, "*.blk"))
	if err != nil || len(blocks) == 0 {
		t.Fatalf("no blocks in %s: %v", msgs, err)
	}
	return blocks[len(blocks)-1]
}
