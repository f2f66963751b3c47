package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"adit/tunnel/agent/state"
	"adit/tunnel/wire"
)

// TestNewsOfTheRelayBeforeIsNotOfTheNewToken has the session with the relay before tell
// where that has gone, when a token of another relay is saved and its session is
// not in use yet.
func TestNewsOfTheRelayBeforeIsNotOfTheNewToken(t *testing.T) {
	before, next := newFakeRelay(t), newFakeRelay(t)
	a, _ := configured(t, before, Config{})
	a.mu.Lock()
	l := a.cur
	a.mu.Unlock()
	if _, err := a.takeToken(next.token(), ""); err != nil {
		t.Fatal(err)
	}
	const old = "192.0.2.7:4433"
	l.handle(wire.Event{Type: wire.EventMoved, Addresses: []string{old}})
	l.handle(wire.Event{Type: wire.EventNodes, Nodes: []wire.Node{{ID: "n1", Address: old}}})
	a.mu.Lock()
	got, nodes := a.login.auth, a.nodes
	a.mu.Unlock()
	if len(got.Addresses) > 0 || len(nodes) > 0 {
		t.Errorf("got the addresses %v of %s and the nodes %v with the token of %s", got.Addresses, got.AddressesOf, nodes, next.addr)
	}
	if saved, err := os.ReadFile(filepath.Join(a.cfg.StateDir, authFile)); err != nil || strings.Contains(string(saved), old) {
		t.Errorf("saved: %s, %v", saved, err)
	}
}

// TestMoveWhileATokenIsSavedIsKept has the relay tell of its addresses while a token
// that it has rotated is being written.
func TestMoveWhileATokenIsSavedIsKept(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	const other = "192.0.2.7:4433"
	write := a.state.Write
	told := false
	setWrite(a, func(path string, data []byte, perm os.FileMode) error {
		if !told {
			told = true
			a.mu.Lock()
			a.login.auth.Addresses, a.login.auth.AddressesOf = []string{other}, state.FingerprintOf(a.login.token)
			a.mu.Unlock()
		}
		return write(path, data, perm)
	})
	if _, err := a.takeToken(r.token(), ""); err != nil {
		t.Fatal(err)
	}
	setWrite(a, write)
	a.mu.Lock()
	got := a.login.auth.Addresses
	a.mu.Unlock()
	if len(got) != 1 || got[0] != other {
		t.Errorf("got the addresses %v, want %s", got, other)
	}
}
