package origin

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestChoiceGoesThroughAllAddressesOnceARound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var addrs []netip.AddrPort
		for i := range 3 {
			addrs = append(addrs, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(i)}), 53))
		}
		c := newChoice(Service{}, slices.Clone(addrs), &addrs[1])
		for round, want := range [][]int{{1, 2, 0}, {0, 1, 2}, {2, 0, 1}} {
			got := []int{c.at}
			for c.Next() && len(got) < 10 {
				got = append(got, c.at)
			}
			if !slices.Equal(got, want) {
				t.Errorf("round %d: got %v, want %v", round, got, want)
			}
			time.Sleep(roundPause)
		}
		one := newChoice(Service{}, addrs[:1], nil)
		time.Sleep(2 * roundPause)
		if one.Next() {
			t.Error("the only address has another")
		}
	})
}
