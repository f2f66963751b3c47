package reliable

import (
	"encoding/binary"
	"testing"
)

// TestDatagramsThatWaitAreBounded queues more than may wait: the oldest go, or the newest
// are not taken, and all others keep their order.
func TestDatagramsThatWaitAreBounded(t *testing.T) {
	for _, size := range []int{8, 1000, smallDatagram, smallDatagram + 1, maxDatagram} {
		for _, dropOldest := range []bool{true, false} {
			var d datagrams
			next := uint64(0) // to come out
			pop := func() {
				t.Helper()
				b := d.pop()
				got := binary.BigEndian.Uint64(b)
				if len(b) != size || got < next || !dropOldest && got != next {
					t.Fatalf("size %d, the oldest go %v: number %d came with %d bytes in place of %d", size, dropOldest, got, len(b), next)
				}
				next = got + 1
				unbuffer(b)
			}
			const all = 3*datagramQueue + 5
			for i := range uint64(all) {
				b := make([]byte, size)
				binary.BigEndian.PutUint64(b, i)
				d.push(b, dropOldest)
				if i < 40 && i%3 == 2 { // the list is not at its beginning when it grows
					pop()
				}
				if d.n > datagramQueue || d.bytes != d.n*size || d.bytes > datagramBytes {
					t.Fatalf("size %d: %d wait, %d bytes", size, d.n, d.bytes)
				}
			}
			most := min(datagramQueue, datagramBytes/size)
			if d.n != most {
				t.Errorf("size %d, the oldest go %v: %d wait, want %d", size, dropOldest, d.n, most)
			}
			for d.n > 0 {
				pop()
			}
			if dropOldest != (next == all) || d.bytes != 0 {
				t.Errorf("size %d, the oldest go %v: the last is number %d of %d; %d bytes are left", size, dropOldest, next, all, d.bytes)
			}
		}
	}
	var d datagrams
	if d.push(make([]byte, maxDatagram+1), true); d.n != 0 {
		t.Error("one that is too large waits")
	}
}
