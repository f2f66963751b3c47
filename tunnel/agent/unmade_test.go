package agent

import (
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"

	"adit/internal/atomicfile"
)

// TestTunnelThatWasNotSavedIsServedByNoNode has the disk fill up just after both
// nodes have a new tunnel.
func TestTunnelThatWasNotSavedIsServedByNoNode(t *testing.T) {
	for name, unable := range map[string][2]int{
		"both take it down": {}, "the first can only later": {1, 0}, "the other can only later": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			all := newFakeNodes(t, 2)
			a, _ := configured(t, all[0], Config{})
			first := mustCreate(t, a, TunnelSpec{LocalPort: 80, Name: "first"})
			eventually(t, "the other node has the first tunnel", func() bool { return all[1].serves(first.ID) })
			for i, r := range all {
				r.set(func() { r.unable = unable[i] })
			}
			var once sync.Once
			var id string
			setWrite(a, func(path string, data []byte, perm fs.FileMode) error {
				if !strings.Contains(string(data), `"second"`) { // only what is to be given back
					return atomicfile.Write(path, data, perm)
				}
				once.Do(func() {
					a.mu.Lock()
					other := a.second
					var made *tunnel
					for _, tun := range a.tunnels {
						if tun.spec.Name == "second" {
							made = tun
						}
					}
					a.mu.Unlock()
					id = made.id
					if err := other.claim(t.Context(), made, true); err != nil { // as it may at any time
						t.Error(err)
					}
				})
				return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			})
			if _, err := a.Create(t.Context(), TunnelSpec{LocalPort: 81, Name: "second"}); err == nil {
				t.Fatal("a tunnel that was not saved was created")
			}
			if id == "" {
				t.Fatal("it was not saved for another reason than the disk")
			}
			eventually(t, "the claim is given back", func() bool { _, has := all[0].claim(id); return !has })
			eventually(t, "the other node serves it no longer", func() bool { return !all[1].serves(id) })
			if !all[0].serves(first.ID) || !all[1].serves(first.ID) {
				t.Error("the tunnel beside it is not served any more")
			}
		})
	}
}
