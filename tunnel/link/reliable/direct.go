package reliable

// directMost is how many bytes that arrived together are passed to a reader directly. For more the
// reader is woken, because copying them is then worth a separate goroutine.
const directMost = 8 << 10

// handOver passes received data to the readers that take it directly, and wakes those that cannot.
// The caller holds mu, which is released while a reader takes, and is the only goroutine in
// onPackets.
func (s *Session) handOver() {
	for _, st := range s.arrived {
		if st.taker != nil && st.available()-st.read <= directMost {
			st.handOver()
		}
		if st.available() > st.read || st.finKnown || st.gone || st.closedRead || s.err != nil || st.readDeadline.passed() {
			st.readable.Signal()
		}
	}
	clear(s.arrived)
	s.arrived = s.arrived[:0]
}

// handOver calls the reader's taker until it has everything or takes no more.
func (st *Stream) handOver() {
	take := st.taker
	st.taking = true
	for hi := st.available(); st.read < hi && !st.finished; {
		part := st.in.slice(st.read, hi)
		st.copyingIn = true
		st.s.mu.Unlock()
		n := take(part)
		st.s.mu.Lock()
		if !st.took(n) || n < len(part) {
			break
		}
	}
	st.taking = false
}
