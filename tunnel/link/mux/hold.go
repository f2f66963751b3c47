package mux

import (
	"cmp"
	"slices"
)

// Memory for received data that nobody reads. Readers that stall must not stop those that read, so
// streams have only their own windows, which shrink as memory runs out; if all streams together
// hold too much, those that hold most are given up.

// hold makes sure that more bytes may be held in addition to the current ones.
func (s *Session) hold(more int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil || s.share.Holds(s.buffered.Load()+more) {
		return
	}
	room := s.share.Room()
	room -= room / 8 // so that streams are not looked through for each frame
	type holder struct {
		st   *Stream
		held int
	}
	var most []holder
	for _, st := range s.streams {
		if held := st.held(); held > 0 {
			most = append(most, holder{st, held})
		}
	}
	slices.SortFunc(most, func(a, b holder) int { return cmp.Compare(b.held, a.held) })
	for _, h := range most {
		if s.buffered.Load()+more <= room {
			return
		}
		s.share.GaveUp()
		s.giveUp(h.st)
	}
}

// giveUp resets a stream. It is called with mu held.
func (s *Session) giveUp(st *Stream) {
	if s.streams[st.id] == st {
		s.appendControl(typeWindow, flagRST, st.id, 0)
		s.drop(st)
		st.fail(s.cfg.Reset, s.cfg.Reset)
	}
}

func (st *Stream) held() int {
	st.rmu.Lock()
	defer st.rmu.Unlock()
	return st.length
}

// mostWindow returns how large a stream's window may be: a fraction of the memory that is left, so
// that a few stalled readers cannot hold all of it. It is called with mu held.
func (s *Session) mostWindow() uint32 {
	return uint32(max(initialWindow, min(maxWindow, s.share.Left(s.buffered.Load())/4)))
}
