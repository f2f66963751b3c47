package allowance

import (
	"bytes"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ofGroup returns how many bytes of memory the process's control group and
// those above it allow it; math.MaxInt64 if there is no bound. The system's files
// are below root.
//
// cgroups(7): /proc/self/cgroup has a line "0::/path" for version 2, and one as
// "9:memory:/path" for version 1. In a container the path may be one of the host
// that is not there, and what is mounted is the container's own group: then the
// top is what counts, to which going up leads.
func ofGroup(root string) int64 {
	least := int64(math.MaxInt64)
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(groups)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		var folder, file string
		switch {
		case fields[0] == "0" && fields[1] == "":
			folder, file = "sys/fs/cgroup", "memory.max"
		case slices.Contains(strings.Split(fields[1], ","), "memory"):
			folder, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		for at := path.Clean("/" + fields[2]); ; at = path.Dir(at) {
			least = min(least, bound(filepath.Join(root, folder, at, file)))
			if at == "/" {
				break
			}
		}
	}
	return least
}

// bound reads a group's bound. No bound is "max", or in version 1 all that a
// counter of pages holds.
func bound(file string) int64 {
	const unbounded = 1 << 60
	data, err := os.ReadFile(file)
	if err != nil {
		return math.MaxInt64
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(data)), 10, 64)
	if err != nil || n <= 0 || n >= unbounded {
		return math.MaxInt64
	}
	return n
}
