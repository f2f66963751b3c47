// Package allowance reports the resources that the system grants this process, so that limits can
// fit the machine: one may offer half a gigabyte and a thousand files, another a hundred times as
// much.
package allowance

import (
	"math"

	"github.com/nats-io/nats-server/v2/server/sysmem"
)

// Memory returns how many bytes of memory the process may use: the limit of its control group, such
// as that of a container or service, or else what the machine has. math.MaxInt64 if neither is
// known.
func Memory() int64 {
	least := Group()
	if has := sysmem.Memory(); has > 0 {
		least = min(least, has)
	}
	return least
}

// Group returns how many bytes of memory the process's control group and those above it allow;
// math.MaxInt64 if there is no limit.
func Group() int64 { return ofGroup("/") }

// Files returns how many files and connections the process may have open at once; math.MaxInt if
// there is no limit.
func Files() int { return int(min(files(), math.MaxInt)) }
