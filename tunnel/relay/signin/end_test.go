package signin

import (
	"testing"
	"time"

	"adit/tunnel/relay/policy"
)

func TestWhatAnEndEnds(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	mark := func(store int64, number uint64) policy.Mark { return policy.Mark{Store: store, Number: number} }
	for name, c := range map[string]struct {
		since time.Duration // before or behind the end, by the clocks of nodes
		mark  policy.Mark
		end   policy.Mark
		want  bool
	}{
		"before":                         {-time.Second, mark(1, 6), mark(1, 7), true},
		"behind":                         {time.Second, mark(1, 7), mark(1, 7), false},
		"before, by a clock ahead":       {time.Hour, mark(1, 6), mark(1, 7), true},
		"behind, by a clock behind":      {-5 * time.Minute, mark(1, 7), mark(1, 7), false},
		"before, and the store set back": {-time.Hour, mark(1, 50), mark(1, 7), true},
		"before, in another store":       {-time.Second, mark(2, 50), mark(1, 7), true},
		"behind, in another store":       {time.Second, mark(2, 3), mark(1, 7), false},
		"before, without a mark":         {0, mark(0, 0), mark(1, 7), true},
		"behind, without a mark":         {time.Millisecond, mark(0, 0), mark(1, 7), false},
		"behind, without any mark":       {time.Millisecond, mark(0, 0), mark(0, 0), false},
	} {
		who := &policy.Identity{Since: at.Add(c.since), Mark: c.mark}
		if got := (End{at, c.end}).over(who); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if (End{}).over(who) {
			t.Errorf("%s: no end ends it", name)
		}
	}
}
