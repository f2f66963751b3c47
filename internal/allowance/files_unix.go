//go:build unix

package allowance

import (
	"math"

	"golang.org/x/sys/unix"
)

// files is the soft bound, which package os raises to the hard one at the start.
func files() uint64 {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return math.MaxInt
	}
	return uint64(l.Cur) //nolint:unconvert // it is signed on some systems
}
