package udpbatch

import "testing"

// TestDatagramsOfOthersAreSegmentedOnlyWhereTheyPassWhole: the system fragments
// no segment, so what may be larger than a path takes leaves by itself.
func TestDatagramsOfOthersAreSegmentedOnlyWhereTheyPassWhole(t *testing.T) {
	c := New(listen(t, "127.0.0.1:0"), Options{NoGRO: true, Fragment: true, NeverWait: true})
	if gso, gro := c.Offloads(); !gso || gro {
		t.Skipf("GSO %v, GRO %v", gso, gro)
	}
	w := newWriter(true)
	for _, of := range []struct{ size, messages int }{{200, 1}, {maxGSOWhole, 1}, {maxGSOWhole + 1, 10}} {
		list := make([][]byte, 10)
		for i := range list {
			list[i] = make([]byte, of.size)
		}
		if taken := w.fill(list, c.fast.gsoMost); taken != 10 || w.to != of.messages {
			t.Errorf("10 datagrams of %d bytes: %d of them are %d messages, want %d", of.size, taken, w.to, of.messages)
		}
	}
}
