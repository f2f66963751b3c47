package e2e

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"adit/internal/netlab"
	"adit/internal/require"
)

// unshared runs a test again in a network and a mount namespace of its own,
// with a small disk for its temporary files. It returns true in there.
func unshared(t *testing.T, disk string) bool {
	t.Helper()
	const mark = "ADIT_E2E_UNSHARED"
	if os.Getenv(mark) == t.Name() {
		tool(t, require.Tool(t, "ip"), "link", "set", "lo", "up")
		return true
	}
	require.Root(t)
	unshare := require.Tool(t, "unshare")
	const script = `mount -t tmpfs -o size="$1" tmpfs "$2" && TMPDIR="$2" exec "$3" -test.run "$4" -test.v -test.timeout 0`
	cmd := exec.CommandContext(t.Context(), unshare, "--net", "--mount", "--kill-child", "--fork",
		"sh", "-c", script, "sh", disk, t.TempDir(), os.Args[0], "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), mark+"="+t.Name(), builtEnv+"="+program)
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	t.Logf("in namespaces of its own:\n%s", out)
	if err != nil {
		t.Errorf("in namespaces of its own: %v", err)
	}
	return false
}

// inSpace runs f on a thread that is in a network namespace, so that the
// sockets which f makes are there.
func inSpace(space string, f func() error) error {
	s, err := netlab.OpenSpace("/run/netns/" + space)
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Do(f)
}

// clientIn is an HTTP client within a network namespace.
func clientIn(t *testing.T, space string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (conn net.Conn, err error) {
		err = inSpace(space, func() (err error) {
			conn, err = (&net.Dialer{}).DialContext(ctx, network, addr)
			return err
		})
		return conn, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// listenIn listens on loopback within a network namespace.
func listenIn(t *testing.T, space string) (l net.Listener) {
	t.Helper()
	if err := inSpace(space, func() (err error) {
		l, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	}); err != nil {
		t.Fatalf("listen in %s: %v", space, err)
	}
	return l
}
