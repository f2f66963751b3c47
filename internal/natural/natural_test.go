package natural

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNamesInOrder(t *testing.T) {
	want := []string{
		"", "01", "1", "2", "10", "10a", "100", "184467440737095516160", "184467440737095516161",
		"client", "client-", "client-0", "client-00", "client-1", "client-2", "client-2-b", "client-10", "client-a", "client2", "client10",
		"clients", "port 20000", "port 20001", "é",
	}
	got := slices.Clone(want)
	rand.Shuffle(len(got), func(i, j int) { got[i], got[j] = got[j], got[i] })
	slices.SortFunc(got, Compare)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestOrderIsSound holds Compare to what sorting relies on, on short names of
// few characters, which often differ little.
func TestOrderIsSound(t *testing.T) {
	name := func() string {
		b := make([]byte, rand.N(6))
		for i := range b {
			b[i] = "00129a-"[rand.N(7)]
		}
		return string(b)
	}
	for range 100_000 {
		a, b, c := name(), name(), name()
		ab, bc, ac := Compare(a, b), Compare(b, c), Compare(a, c)
		if ab != -Compare(b, a) {
			t.Errorf("%q and %q: %d, and the other way round %d", a, b, ab, Compare(b, a))
		}
		if (ab == 0) != (a == b) {
			t.Errorf("%q and %q: %d", a, b, ab)
		}
		if ab <= 0 && bc <= 0 && ac > 0 {
			t.Errorf("%q, %q, %q: each is at most the next, but the first is more than the last", a, b, c)
		}
	}
}
