package udpbatch

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"adit/internal/monotime"
)

// Where packets of udp tunnels come fast but one by one, each wakes the reader of
// its socket, which takes the processor from who would have written the next one,
// so that the next comes one by one too. Readers that look for a moment longer,
// while others go first, find several.
const (
	lingerFor = 20 * time.Microsecond
	// Packets are dense for a while after so many have passed in a span.
	densePackets = 40
	denseSpan    = time.Millisecond
	denseFor     = 2 * time.Millisecond
	// Who gives way to another program loses the processor for milliseconds:
	// then nobody lingers for a while.
	crowdedAfter = 10 * lingerFor
	crowdedFor   = 100 * time.Millisecond
)

// density is how dense packets are. Who counts beside others may lose a few.
type density struct {
	began, passed atomic.Int64 // of the span that is under way
	until         atomic.Int64 // that they are dense; 0 if they never were
	crowded       atomic.Int64 // until when lingering is too dear
}

// process is the density in this process: what passes one socket wakes the
// readers of others.
var process density

// Passed records that n packets of udp tunnels have passed, in either direction. While they come in
// quick succession, readers of UDP sockets linger before they sleep.
func Passed(n int) { process.add(n, monotime.Now()) }

func (d *density) add(n int, now time.Duration) {
	if now-time.Duration(d.began.Load()) > denseSpan {
		d.began.Store(int64(now))
		d.passed.Store(0)
	}
	if d.passed.Add(int64(n)) >= densePackets && int64(now) >= d.crowded.Load() {
		d.until.Store(int64(now + denseFor))
	}
}

// linger asks again and again whether try has read of the socket fd, giving way to
// others before each time, and returns whether it has. It gives up after a moment,
// and does not begin where packets are not dense.
func (d *density) linger(try func(fd uintptr) bool, fd uintptr, now func() time.Duration) bool {
	until := time.Duration(d.until.Load())
	if until == 0 {
		return false
	}
	begun := now()
	if begun > until {
		return false
	}
	for {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
		read, at := try(fd), now()
		if at-begun >= crowdedAfter {
			d.until.Store(0)
			d.crowded.Store(int64(at + crowdedFor))
		}
		if read || at-begun >= lingerFor {
			return read
		}
	}
}
