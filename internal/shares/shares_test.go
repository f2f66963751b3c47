package shares

import "testing"

func TestEachHasItsPart(t *testing.T) {
	var s Shares
	const most = 10
	take := func(client string, want int) {
		t.Helper()
		n := 0
		for range 3 * most {
			if s.Take(client, most) {
				n++
			}
		}
		if n != want {
			t.Errorf("%s takes %d, want %d", client, n, want)
		}
	}
	take("a", most) // alone
	take("b", most/2)
	take("c", most/3)
	take("a", 0)
	if all, clients := s.Taken(); all >= 2*most || clients != 3 {
		t.Errorf("%d are taken by %d", all, clients)
	}
	for range most {
		s.Give("a")
	}
	take("b", 2) // there is room for all again
	for range most/2 + 2 {
		s.Give("b")
	}
	for range most / 3 {
		s.Give("c")
	}
	if all, clients := s.Taken(); all != 0 || clients != 0 {
		t.Errorf("in the end %d are taken by %d", all, clients)
	}
}
