package lean

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// forgetProgram unmaps the pages of the program's own file. They stay in the
// kernel's cache, from which those that are needed come back at a touch. What
// the program, or its loader, has written into is left alone.
func forgetProgram() {
	own, err := os.Executable()
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range cleanMappings(maps, own) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED) // it is an advice
	}
}

type mapping struct{ start, end uintptr }

// cleanMappings finds in /proc/self/smaps (proc(5)) where the file is mapped
// without right to write and without a page that differs from it.
func cleanMappings(smaps []byte, file string) []mapping {
	var found []mapping
	var now *mapping
	keep := func() {
		if now != nil {
			found = append(found, *now)
		}
		now = nil
	}
	lines := bufio.NewScanner(bytes.NewReader(smaps))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if name, isValue := strings.CutSuffix(fields[0], ":"); isValue {
			switch name {
			case "Anonymous", "Locked": // a page that was written into is anonymous, also where writing is over
				if len(fields) < 2 || fields[1] != "0" {
					now = nil
				}
			}
			continue
		}
		keep()
		from, to, ok := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		if ok && err1 == nil && err2 == nil && start < end && len(fields) == 6 && fields[5] == file && strings.HasPrefix(fields[1], "r-") {
			now = &mapping{uintptr(start), uintptr(end)}
		}
	}
	keep()
	return found
}
