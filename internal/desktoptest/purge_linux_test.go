package desktoptest

import (
	"testing"

	"adit/internal/require"
)

// TestPurgeLeavesTheRelays holds that the package, which is the client's, takes its
// own configuration away and not that of a relay on the same machine, which
// docs/operations.md puts beside it.
func TestPurgeLeavesTheRelays(t *testing.T) {
	t.Parallel()
	require.Opted(t)
	for _, relay := range []bool{false, true} {
		r := newScriptRoot(t, "dash")
		r.write("/postremove.sh", string(read(t, "../../build/linux/postremove.sh")), 0o755)
		for _, name := range []string{"/etc/adit/adit.toml", "/etc/adit/api-token", "/var/lib/private/adit/auth.json"} {
			r.write(name, "a secret", 0o600)
		}
		kept := map[string]bool{"/etc/adit/adit.toml": false, "/var/lib/private/adit/auth.json": false, "/etc/adit": relay}
		if relay {
			for _, name := range []string{"/etc/adit/relay.toml", "/etc/adit/nats.key", "/var/lib/adit-relay/store.db"} {
				r.write(name, "the relay's", 0o600)
				kept[name] = true
			}
		}
		r.run("chroot", r.dir, "/bin/sh", "/postremove.sh", "remove")
		if !r.exists("/etc/adit/adit.toml") || !r.exists("/var/lib/private/adit/auth.json") {
			t.Errorf("with a relay %t: a removal that is no purge has deleted configuration or state", relay)
		}
		r.run("chroot", r.dir, "/bin/sh", "/postremove.sh", "purge")
		for name, want := range kept {
			if r.exists(name) != want {
				t.Errorf("with a relay %t: %s is there: %t, want %t", relay, name, !want, want)
			}
		}
	}
}
