package agent

import (
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"adit/internal/atomicfile"
	"adit/tunnel/agent/definition"
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
			first := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Name: "first"})
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
					other, made := secondAnd(a, "second")
					id = made.id
					if err := other.claim(t.Context(), made, true); err != nil { // as it may at any time
						t.Error(err)
					}
				})
				return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
			})
			if _, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 81, Name: "second"}); err == nil {
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

// slowNodes are two, of which the other takes its time with claims from now on, until
// end is called; asked is how many claims it has not answered.
func slowNodes(t *testing.T) (all []*fakeRelay, a *Agent, first Tunnel, asked func() int, end func()) {
	all = newFakeNodes(t, 2)
	a, _ = configured(t, all[0], Config{})
	first = mustCreate(t, a, definition.Tunnel{LocalPort: 80, Name: "first"})
	eventually(t, "the other node has the tunnel", func() bool { return all[1].serves(first.ID) })
	hold := make(chan struct{})
	end = sync.OnceFunc(func() { close(hold) })
	t.Cleanup(end)
	all[1].set(func() { all[1].hold = hold })
	return all, a, first, func() (n int) { all[1].set(func() { n = all[1].held }); return n }, end
}

// wantQuick calls do, which must not wait for the other node.
func wantQuick(t *testing.T, do func()) {
	t.Helper()
	begin := time.Now()
	do()
	if took := time.Since(begin); took > relayWait/2 {
		t.Errorf("it took %v", took)
	}
}

func wantNothingOwed(t *testing.T, a *Agent) {
	t.Helper()
	eventually(t, "nothing is owed", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.releases) == 0 && len(a.second.owed) == 0
	})
}

// TestGivingATunnelUpDoesNotWaitForTheSecondSession has a tunnel not saved that the other
// node is being asked for: the node in use is told at once, the other when it has
// answered.
func TestGivingATunnelUpDoesNotWaitForTheSecondSession(t *testing.T) {
	t.Parallel() // where it fails, it waits
	all, a, _, asked, end := slowNodes(t)
	var (
		once   sync.Once
		id     string
		asking sync.WaitGroup
	)
	defer asking.Wait()
	defer end()
	setWrite(a, func(path string, data []byte, perm fs.FileMode) error {
		if !strings.Contains(string(data), `"second"`) {
			return atomicfile.Write(path, data, perm)
		}
		once.Do(func() {
			other, made := secondAnd(a, "second")
			id = made.id
			// Not by its own round, which may be waiting to write, too.
			asking.Go(func() { _ = other.claim(t.Context(), made, true) }) // given up while it is asked for
			eventually(t, "the other node is asked", func() bool { return asked() == 1 })
		})
		return &fs.PathError{Op: "write", Path: path, Err: syscall.ENOSPC}
	})
	wantQuick(t, func() {
		if _, err := a.Create(t.Context(), definition.Tunnel{LocalPort: 81, Name: "second"}); err == nil {
			t.Error("a tunnel that was not saved was created")
		}
	})
	if _, has := all[0].claim(id); has {
		t.Error("the node in use was not told that the tunnel was given up")
	}
	end()
	eventually(t, "the other node has answered and serves it no longer", func() bool {
		_, has := all[1].claim(id)
		return has && !all[1].serves(id)
	})
	wantNothingOwed(t, a)
}

// TestStopDoesNotWaitForTheSecondSession is the same with a tunnel that was changed and
// is stopped.
func TestStopDoesNotWaitForTheSecondSession(t *testing.T) {
	t.Parallel()
	all, a, first, asked, end := slowNodes(t)
	if _, err := a.Change(t.Context(), first.ID, definition.Patch{HostHeader: new("a.example")}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other node is asked", func() bool { return asked() == 1 })
	wantQuick(t, func() {
		if _, err := a.StopTunnel(t.Context(), first.ID); err != nil {
			t.Error(err)
		}
	})
	if all[0].serves(first.ID) {
		t.Error("the node in use was not told of the stop")
	}
	end()
	eventually(t, "the other node has answered and serves it no longer", func() bool {
		c, _ := all[1].claim(first.ID)
		return c.HostHeader == "a.example" && !all[1].serves(first.ID)
	})
	wantNothingOwed(t, a)
}

// secondAnd returns an agent's second session, and its tunnel of a name.
func secondAnd(a *Agent, name string) (*live, *tunnel) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tunnels {
		if t.spec.Name == name {
			return a.second, t
		}
	}
	return a.second, nil
}
