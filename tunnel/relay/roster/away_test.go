package roster

import (
	"strconv"
	"testing"
	"time"
)

// A client that keeps using new instances is remembered at its own expense.
func TestAgentsThatAreAwayAreBounded(t *testing.T) {
	var away absence
	at := time.Now()
	other := Agent{"other", "i1"}
	away.begin(other, at)
	for i := range 2 * maxAway {
		away.begin(Agent{"busy", strconv.Itoa(i)}, at)
	}
	if n := away.all; n > maxAway {
		t.Errorf("%d agents are remembered, of at most %d", n, maxAway)
	}
	newest := Agent{"busy", strconv.Itoa(2*maxAway - 1)}
	for _, key := range []Agent{other, newest} {
		if _, ok := away.since(key); !ok {
			t.Errorf("%v is forgotten", key)
		}
	}
	away.begin(newest, at)
	away.end(other)
	away.end(other)
	if _, ok := away.since(other); ok {
		t.Error("an agent that is back counts as away")
	}
	count := func() (n int) {
		for _, list := range away.of {
			n += len(list)
		}
		return n
	}
	if n := count(); n != away.all {
		t.Errorf("%d are remembered, and %d are counted", n, away.all)
	}
	away.begin(other, at.Add(time.Minute))
	if away.forget(at.Add(time.Second)); away.all != 1 || count() != 1 {
		t.Errorf("%d are remembered, want the one that went away late", count())
	}
}

// BenchmarkAway makes agents of one client come and go while the maximum number of other
// clients' agents is remembered.
func BenchmarkAway(b *testing.B) {
	var away absence
	for i := range maxAway {
		away.begin(Agent{"other", strconv.Itoa(i)}, time.Now())
	}
	names := make([]string, 1000)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	for i := 0; b.Loop(); i++ {
		away.begin(Agent{"busy", names[i%len(names)]}, time.Now())
	}
}
