package reliable

import (
	"testing"
	"time"
)

// TestAcknowledgedPiecesCostLittle: a peer acknowledges every second packet of a
// stream, with as few packets as it can.
func TestAcknowledgedPiecesCostLittle(t *testing.T) {
	const packets, size = 6000, 1100
	s := &Session{streams: make(map[uint64]*Stream), sleeping: true, wakes: make(chan struct{}, 1)}
	st := s.newStream(0)
	st.end, st.sentTo, s.buffered = packets*size, packets*size, packets*size
	for n := uint64(1); n < packets; n += 2 {
		st.onAcked(n*size, (n+1)*size)
	}
	began := time.Now()
	for n := uint64(0); n < packets; n += 2 {
		s.onFrameLost(&sentFrame{kind: sentStream, stream: st, offset: n * size, length: size})
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("to find %d packets lost took %v", packets/2, took)
	}
	if len(st.again) != packets/2 {
		t.Errorf("%d pieces are sent again, want %d", len(st.again), packets/2)
	}
}
