package mux

// Quiet reports whether the stream is open in both directions and nothing unread has arrived, not
// even its end.
func (st *Stream) Quiet() bool {
	s := st.session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || st.writeErr != nil {
		return false
	}
	st.rmu.Lock()
	defer st.rmu.Unlock()
	return st.readErr == nil && !st.finReceived && st.length == 0 && st.arriving == 0
}
