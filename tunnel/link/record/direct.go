package record

// directPackets is how many packets are passed at once, at most.
const directPackets = 64

// Direct makes the goroutine that reads packets from the socket pass them to handle, if they
// arrived alone and none waits for Receive. This spares a quiet session the detour through
// Receive's goroutine. handle must not take long, because packets of other sessions wait; it is
// never called while packets returned by Receive are in use, that is, between two calls of Receive.
// Packets stay in order.
func (c *Conn) Direct(handle func([]Packet)) { c.direct.Store(&handle) }

// handOver passes a buffer to the handler, and reports whether it did. It is called by the reader
// of a socket.
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
