package reliable

// Quiet reports whether the stream is open in both directions and nothing unread has arrived, not
// even its end.
func (st *Stream) Quiet() bool {
	st.s.mu.Lock()
	defer st.s.mu.Unlock()
	return st.s.err == nil && !st.gone && !st.stopped && !st.closedRead && !st.finWanted && !st.resetWanted &&
		!st.finKnown && st.available() == st.read
}
