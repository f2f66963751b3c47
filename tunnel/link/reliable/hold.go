package reliable

import (
	"cmp"
	"slices"
)

// Memory for received data that nobody reads. Readers that stall, such as visitors who pause a
// film, must never stop those that read, so what one of them leaves unread takes nothing from the
// session's window: that follows what has arrived, not what was read. Instead, memory is limited in
// two ways: windows shrink as memory runs out, and the streams that hold most are given up when all
// together hold too much.

// held is how many bytes nobody has read yet, including gaps before bytes that arrived.
func (s *Session) held() int64 { return int64(s.recvData - s.consumed) }

func (st *Stream) held() uint64 { return st.highest - st.read }

// consume records that n bytes are no longer held.
func (s *Session) consume(n uint64) {
	s.consumed += n
	if s.err == nil {
		s.share.Holds(s.held())
	}
}

// hold enforces the limit after the held data has grown.
func (s *Session) hold() {
	if s.recvAllowed-s.recvData < sessionFlow/2 {
		s.recvAllowed = s.recvData + sessionFlow
		s.tellData = true
		s.wake()
	}
	if s.err != nil || s.share.Holds(s.held()) {
		return
	}
	room := s.share.Room()
	room -= room / 8 // so that streams are not looked through for each packet
	var most []*Stream
	for _, st := range s.streams {
		if st.held() > 0 {
			most = append(most, st)
		}
	}
	slices.SortFunc(most, func(a, b *Stream) int { return cmp.Compare(b.held(), a.held()) })
	for _, st := range most {
		if s.held() <= room {
			break
		}
		s.share.GaveUp()
		st.giveUp()
	}
}

// giveUp ends a stream whose reader leaves too much unread.
func (st *Stream) giveUp() {
	st.givenUp = true
	st.resetWriting()
	st.stopReading()
}

// mostWindow is how large a stream's window may be: a part of the memory that
// is left, so that no few readers who stand still can hold all of it.
func (s *Session) mostWindow() uint64 {
	return max(initialStreamWindow, min(uint64(s.cfg.StreamWindow), uint64(s.share.Left(s.held()))/4))
}

// closing notes a stream that was closed while some of it waits for the peer, who
// may never take it: nobody would notice. Once too much waits in such streams,
// those that were closed first are given up.
func (s *Session) closing(st *Stream) {
	over := func(st *Stream) bool { return s.streams[st.id] != st || st.base == st.end }
	if len(s.closed) > 64+2*len(s.streams) {
		s.closed = slices.DeleteFunc(s.closed, over)
	}
	s.closed = append(s.closed, st)
	if s.buffered <= int64(s.cfg.SendBuffer) {
		return
	}
	s.closed = slices.DeleteFunc(s.closed, over)
	var waits uint64
	for _, st := range s.closed {
		waits += st.end - st.base
	}
	given := 0
	for ; waits > uint64(s.cfg.SendBuffer); given++ {
		waits -= s.closed[given].end - s.closed[given].base
		s.closed[given].resetWriting()
	}
	s.closed = slices.Delete(s.closed, 0, given)
}
