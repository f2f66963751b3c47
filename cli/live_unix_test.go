//go:build !windows

package cli

import (
	"os"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestShortFormRemovesItsTunnelWhenNobodyReads(t *testing.T) {
	d := newFakeDaemon(t)
	d.streamEvents(liveEvents()...)
	out, _, _ := startLive(t, false, "http", "3000")
	out.waitFor(t, "session paused")
	// What a write to a pipe without a reader raises.
	if err := syscall.Kill(os.Getpid(), syscall.SIGPIPE); err != nil {
		t.Fatal(err)
	}
	for limit := time.Now().Add(time.Minute); !slices.Contains(d.requests(), "DELETE /api/v1/tunnels/t_1"); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("the tunnel is still there after %q", d.requests())
		}
	}
}
