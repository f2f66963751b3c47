package netwatch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
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
	ip := requireIP(t)
	apart(t, func() error {
		sys, stop := subscribe()
		defer stop()
		if !sys.whole {
			return errors.New("the system does not tell of everything")
		}
		for _, args := range [][]string{
			{"link", "set", "lo", "up"},
			{"addr", "add", "192.0.2.1/24", "dev", "lo"},
			{"addr", "del", "192.0.2.1/24", "dev", "lo"},
		} {
			if err := change(ip, args...); err != nil {
				return err
			}
		}
		timeout := time.After(20 * time.Second)
		for {
			select {
			case p := <-sys.news:
				if p == removed {
					return nil
				}
			case <-timeout:
				return errors.New("nothing was told of an address that was taken away")
			}
		}
	})
}

// TestRunTellsWithoutLooking changes one thing after the other; a look that
// nobody asked for comes too late to see any of it.
func TestRunTellsWithoutLooking(t *testing.T) {
	ip := requireIP(t)
	apart(t, func() error {
		for _, args := range [][]string{
			{"link", "set", "lo", "up"},
			{"link", "add", "one", "type", "veth", "peer", "name", "other1"},
			{"link", "set", "other1", "up"},
			{"addr", "add", "192.0.2.1/24", "dev", "one"},
			{"link", "set", "one", "up"},
			{"link", "add", "two", "type", "veth", "peer", "name", "other2"},
			{"link", "set", "other2", "up"},
			{"addr", "add", "198.51.100.1/24", "dev", "two"},
			{"link", "set", "two", "up"},
			{"route", "add", "203.0.113.0/24", "dev", "one"},
		} {
			if err := change(ip, args...); err != nil {
				return err
			}
		}
		told := make(chan Change, 100)
		// A namespace belongs to a thread, so the looks are made on this one.
		asked, seen := make(chan struct{}), make(chan state)
		look := func() state { return state{addresses(), source(netip.MustParseAddrPort("203.0.113.9:443"))} }
		w := Watcher{
			Interval: time.Hour,
			Changed:  func(c Change) { told <- c },
			look:     func() state { asked <- struct{}{}; return <-seen },
		}
		sys, stop := subscribe()
		defer stop()
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- w.run(ctx, sys) }()
		await := func(want Change, timeout <-chan time.Time) (Change, error) {
			for {
				select {
				case <-asked:
					seen <- look()
				case c := <-told:
					if c == want {
						return c, nil
					}
				case <-timeout:
					return "", fmt.Errorf("%s was not told", want)
				}
			}
		}
		<-asked // the first look, which must be before the first change
		seen <- look()
		_, _ = await("", time.After(time.Second)) // other looks at the start
		defer func() {
			cancel()
			for {
				select {
				case <-asked:
					seen <- state{}
				case <-done:
					return
				}
			}
		}()
		for _, step := range []struct {
			want Change
			args []string
		}{
			{Addresses, []string{"addr", "add", "192.0.2.7/24", "dev", "two"}},
			{Route, []string{"route", "replace", "203.0.113.0/24", "dev", "two"}},
			{Route, []string{"rule", "add", "to", "203.0.113.9", "lookup", "100"}},
			{Addresses, []string{"addr", "del", "192.0.2.7/24", "dev", "two"}},
			{Route, []string{"link", "set", "one", "down"}},
		} {
			if step.args[0] == "rule" {
				if err := change(ip, "route", "add", "203.0.113.0/24", "dev", "one", "table", "100"); err != nil {
					return err
				}
			}
			if err := change(ip, step.args...); err != nil {
				return err
			}
			if _, err := await(step.want, time.After(20*time.Second)); err != nil {
				return fmt.Errorf("after ip %v: %w", step.args, err)
			}
		}
		return nil
	})
}

func requireIP(t *testing.T) string {
	t.Helper()
	require.Root(t)
	return require.Tool(t, "ip")
}

func change(ip string, args ...string) error {
	if out, err := exec.Command(ip, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %v: %s", args, out)
	}
	return nil
}

// apart runs f on a thread that has a network namespace of its own and is thrown
// away with it.
func apart(t *testing.T, f func() error) {
	t.Helper()
	failed := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			failed <- fmt.Errorf("unshare: %w", err)
			return
		}
		failed <- f()
	}()
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
}
