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

// TestPiecesInAnyOrderCostLittle: a peer has a stream come in as many pieces as it
// may, from its end on. In one list that takes twenty times as long.
func TestPiecesInAnyOrderCostLittle(t *testing.T) {
	took := func(add func(lo, hi uint64) uint64) time.Duration {
		began := time.Now()
		for i := uint64(maxGaps); i > 0; i-- {
			add(2*i, 2*i+1)
		}
		return time.Since(began)
	}
	list, runs := time.Hour, time.Hour
	for range 5 {
		var p pieces
		var one intervals
		list, runs = min(list, took(one.add)), min(runs, took(p.add))
		if p.n != maxGaps {
			t.Fatalf("%d pieces, want %d", p.n, maxGaps)
		}
	}
	if list < 4*runs {
		t.Errorf("it took %v, and %v in one list", runs, list)
	}
}
