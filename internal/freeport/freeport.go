// Package freeport gives tests and benchmarks ports that stay free while nobody listens on them:
// before a server has started, and while it restarts. A port picked by the system may be picked
// again by any program in between. The ports here lie below the range that systems pick from, and
// each process has its own part of them.
package freeport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"adit/internal/lockfile"
)

// The ports between first and last are given out, each process those of one part.
// Tests of the relay take others: those from 21000 on.
const (
	first = 12000
	last  = 20000
	each  = 500
)

// own is this process's part: other packages' tests run at the same time.
var own struct {
	sync.Mutex
	lock     *lockfile.Lock // until the process ends
	from, at int
}

// Get returns a port of 127.0.0.1 that is free for both TCP and UDP.
func Get(tb testing.TB) int {
	tb.Helper()
	return Row(tb, 1)
}

// Loopback returns such a port as an address to listen on.
func Loopback(tb testing.TB) string {
	tb.Helper()
	return at(Get(tb))
}

// Row returns the first of n consecutive free ports.
func Row(tb testing.TB, n int) int {
	tb.Helper()
	port, err := Find(n)
	if err != nil {
		tb.Fatal(err)
	}
	return port
}

// Find is Row for use outside tests.
func Find(n int) (int, error) {
	own.Lock()
	defer own.Unlock()
	if own.lock == nil {
		if err := take(); err != nil {
			return 0, err
		}
	}
	for row, tries := 0, 0; tries < 2*each; tries++ {
		if own.at++; own.at >= own.from+each {
			own.at, row = own.from, 0
		}
		if row++; !isFree(own.at) {
			row = 0
		}
		if row == n {
			return own.at - n + 1, nil
		}
	}
	return 0, fmt.Errorf("no %d free ports in a row", n)
}

// take makes a part of the ports this process's own.
func take() error {
	for from := first; from+each <= last; from += each {
		lock, err := lockfile.Take(filepath.Join(os.TempDir(), fmt.Sprintf("adit-ports-%d-%d.lock", os.Getuid(), from)))
		if err == nil {
			own.lock, own.from, own.at = lock, from, from-1
			return nil
		}
	}
	return errors.New("all ports for tests are taken by other runs")
}

func isFree(port int) bool {
	l, err := net.Listen("tcp", at(port))
	if err != nil {
		return false
	}
	l.Close()
	c, err := net.ListenPacket("udp", at(port))
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func at(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
