package netwatch

import (
	"context"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"adit/internal/require"
)

func FuzzParse(f *testing.F) {
	f.Add([]byte{20, 0, 0, 0, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 24, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := parse(b); len(got) > len(b)/unix.NLMSG_HDRLEN {
			t.Errorf("%d pieces of %d bytes", len(got), len(b))
		}
	})
}

// TestSystemTellsOfAnAddress changes addresses in a network namespace of its own.
func TestSystemTellsOfAnAddress(t *testing.T) {
	require.Root(t)
	ip := require.Tool(t, "ip")
	run := make(chan func())
	go func() { // the thread has another namespace and is thrown away with it
		runtime.LockOSThread()
		f := <-run
		f()
	}()
	failed := make(chan string, 1)
	run <- func() {
		defer close(failed)
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			failed <- "unshare: " + err.Error()
			return
		}
		sys, stop := subscribe()
		defer stop()
		for _, args := range [][]string{
			{"link", "set", "lo", "up"},
			{"addr", "add", "192.0.2.1/24", "dev", "lo"},
			{"addr", "del", "192.0.2.1/24", "dev", "lo"},
		} {
			if out, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
				failed <- "ip: " + string(out)
				return
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		for {
			select {
			case p := <-sys.news:
				if p == removed {
					return
				}
			case <-ctx.Done():
				failed <- "nothing was told of an address that was taken away"
				return
			}
		}
	}
	if why, bad := <-failed; bad {
		t.Fatal(why)
	}
}
