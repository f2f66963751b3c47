package agent

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"adit/internal/atomicfile"
	"adit/tunnel/agent/definition"
)

// What adit.toml says holds while the state folder cannot be written: a tunnel
// that was taken out of it must not stay public for want of disk space.
func TestDeclaredTunnelsComeAndGoWhileTheDiskIsFull(t *testing.T) {
	r := newFakeRelay(t)
	dir := t.TempDir()
	a, _ := configured(t, r, Config{StateDir: dir})
	if err := a.Declare(t.Context(), []definition.Tunnel{{Name: "shop", LocalPort: 80}}); err != nil {
		t.Fatal(err)
	}
	wantTunnel(t, a, declaredID("shop"), TunnelRunning)
	setWrite(a, func(path string, _ []byte, _ fs.FileMode) error {
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	})
	if err := a.Declare(t.Context(), []definition.Tunnel{{Name: "blog", LocalPort: 81}}); err != nil {
		t.Errorf("with a full disk: got error %v, want what is declared to hold", err)
	}
	if _, ok := a.Tunnel(declaredID("shop")); ok {
		t.Error("the tunnel that is not declared any more is still there")
	}
	if _, ok := r.claim(declaredID("shop")); ok {
		t.Error("the tunnel that is not declared any more is still public")
	}
	blog := wantTunnel(t, a, declaredID("blog"), TunnelRunning)

	setWrite(a, atomicfile.Write)
	eventually(t, "the address that was given is saved once there is room", func() bool {
		text, err := os.ReadFile(filepath.Join(dir, tunnelsFile))
		return err == nil && strings.Contains(string(text), blog.PublicURL)
	})
}
