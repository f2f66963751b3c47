package record

// directPackets is how many packets are handed over at once, at most.
const directPackets = 64

// Direct lets packets be given to handle by the goroutine that read them from
// the socket, where they came alone and none waits for Receive: that saves
// a quiet session the way over Receive's goroutine. handle must not wait for
// long, as other sessions' packets do; it is never called while packets that
// Receive returned are in use, that is, between two calls of Receive. Packets
// keep their order.
func (c *Conn) Direct(handle func([]Packet)) { c.direct.Store(&handle) }

// handOver gives a buffer to the handler, and reports whether it did. It is
// called by the reader of a socket.
func (c *Conn) handOver(in *inbound) bool {
	handle := c.direct.Load()
	if handle == nil || !in.alone || c.queued.Load() != 0 || !c.ready.Load() || !c.opening.TryLock() {
		return false
	}
	defer c.opening.Unlock()
	if c.queued.Load() != 0 || c.current != nil || c.isEnding() || c.Err() != nil {
		return false
	}
	c.current = in
	if want := min(2+len(in.data)/max(in.seg, 1), directPackets); len(c.few) < want {
		c.few = make([]Packet, want)
	}
	for c.current != nil && !c.isEnding() {
		if n := c.openInto(c.few, 0); n > 0 {
			(*handle)(c.few[:n])
		}
	}
	c.current, c.datagram, in.data = nil, nil, nil
	if !c.isEnding() {
		in.release()
		return true
	}
	c.queued.Add(int64(len(in.buf))) // Receive wakes up by it, and ends the session
	select {
	case c.queue <- in:
	default:
		c.drop(in) // it is awake
	}
	return true
}
