//go:build linux

package desktoptest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"adit/internal/require"
)

// TestServiceUnderInitScripts runs the service under OpenRC and under System V
// init. Neither needs to have booted the machine: their programs run in a Debian
// of its own root, network and processes.
func TestServiceUnderInitScripts(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	require.Root(t)
	unshare := require.Tool(t, "unshare")
	archive := debian(t, "openrc", "sysvinit-core", "orphan-sysvinit-scripts", "initscripts", "procps", "curl")
	exe := released(t, firstVersion)
	script, err := os.ReadFile("testdata/initscript.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		manager string
		inittab string
	}{
		{"openrc", "::sysinit:/sbin/openrc sysinit\n"},
		{"sysv", "id:2:initdefault:\n"},
	} {
		t.Run(tt.manager, func(t *testing.T) {
			t.Parallel()
			root := filepath.Join(t.TempDir(), "root")
			rootFS(t, root, archive)
			must(t, patience, nil, "install", "-m", "755", exe, filepath.Join(root, "usr/local/bin/adit"))
			for name, text := range map[string]string{"lab.sh": string(script), "etc/inittab": tt.inittab} {
				if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			// Debian's OpenRC brings openrc-init, by which it is known; System V
			// init is what remains without it.
			if tt.manager == "sysv" {
				for _, name := range []string{"sbin/openrc-init", "usr/sbin/openrc-init", "sbin/openrc-run", "usr/sbin/openrc-run"} {
					if err := os.Remove(filepath.Join(root, name)); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
				}
			}
			if err := os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o666); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			out, err := command(t, 5*time.Minute, []string{"HOME=/root"}, unshare, "--net", "--pid", "--mount", "--fork", "--kill-child",
				"sh", "-c", `ip link set lo up && mount --bind /dev "$0/dev" && mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/run" && exec chroot "$0" bash /lab.sh "$1"`, root, tt.manager)
			t.Logf("the service's life: %.1f s", time.Since(begin).Seconds())
			if err != nil {
				t.Errorf("the script: %v", err)
			}
			verdicts(t, out+"\n", 30)
		})
	}
}
