package record

import (
	"testing"

	"adit/internal/udpbatch"
)

// TestWhatWaitsAtAServerIsBounded, in bytes and in number; and what was dropped takes no
// room of what comes later, or a session that was busy for once would hear nothing more.
func TestWhatWaitsAtAServerIsBounded(t *testing.T) {
	for size, most := range map[int]int{largeBuffer: queueBytes / largeBuffer, smallBuffer: queueBuffers} {
		c := newConn(Config{}, false, nil, udpbatch.Addr{})
		c.ready.Store(true)
		enqueue := func() {
			in := takeInbound(size)
			in.data = in.buf
			c.enqueue(in)
		}
		const more = 10
		for range most + more {
			enqueue()
		}
		if got := len(c.queue); got != most || c.Dropped() != more {
			t.Errorf("buffers of %d bytes: %d wait and %d were dropped, want %d and %d", size, got, c.Dropped(), most, more)
		}
		for len(c.queue) > 0 {
			c.take(<-c.queue)
		}
		c.current = nil
		c.releaseHeld()
		if got := c.queued.Load(); got != 0 {
			t.Errorf("buffers of %d bytes: %d bytes count as waiting when none wait", size, got)
		}
		if enqueue(); len(c.queue) != 1 {
			t.Errorf("buffers of %d bytes: one that comes later is dropped", size)
		}
	}
}
