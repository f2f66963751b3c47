package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"adit/tunnel/wire"
)

// TestARelayThatMovesAllTheTimeIsNotWrittenAllTheTime: what it says last is kept
// nonetheless, at the end at the latest.
func TestARelayThatMovesAllTheTimeIsNotWrittenAllTheTime(t *testing.T) {
	r := newFakeRelay(t)
	a, stop := configured(t, r, Config{})
	a.mu.Lock()
	l := a.cur
	a.mu.Unlock()
	write := a.state.Write
	var writes atomic.Int32
	setWrite(a, func(path string, data []byte, perm fs.FileMode) error {
		writes.Add(1)
		return write(path, data, perm)
	})
	const here, there = "192.0.2.7:4433", "192.0.2.8:4433"
	for range 500 {
		l.handle(wire.Event{Type: wire.EventMoved, Addresses: []string{there}})
		l.handle(wire.Event{Type: wire.EventNodes, Nodes: []wire.Node{{ID: "n1", Address: here}}})
	}
	if got := writes.Load(); got < 1 || got > 2*moveBurst {
		t.Errorf("1000 moves were written %d times, want some and at most %d", got, 2*moveBurst)
	}
	a.mu.Lock()
	now := a.login.auth.Addresses
	a.mu.Unlock()
	if len(now) != 1 || now[0] != here {
		t.Errorf("in force is %v, want %s", now, here)
	}
	stop()
	if saved, err := os.ReadFile(filepath.Join(a.cfg.StateDir, authFile)); err != nil || !strings.Contains(string(saved), here) {
		t.Errorf("saved: %s, %v", saved, err)
	}
}
