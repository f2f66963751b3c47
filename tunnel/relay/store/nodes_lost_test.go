package store

import (
	"fmt"
	"testing"

	"adit/tunnel/relay/store/natstest"
)

// TestNodesSeeEachOtherAfterALoss has servers lose their latest writes, as in a power failure,
// or everything. What is written afterwards has lower revisions than those already known.
func TestNodesSeeEachOtherAfterALoss(t *testing.T) {
	for name, lose := range map[string]func(ns *natstest.Server, back func()){
		"of the last": func(_ *natstest.Server, back func()) { back() },
		"of all":      func(ns *natstest.Server, _ func()) { ns.Empty() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			ns := natstest.Start(t)
			cfg := Config{URLs: []string{ns.URL()}}
			a, b := openAt(t, cfg), openAt(t, cfg)
			renew := func(boot string) {
				t.Helper()
				eventually(t, "the entry is written", func() bool { return a.Nodes.Renew(t.Context(), Node{ID: "n_a", Boot: boot}) == nil })
			}
			sees := func(boot string) {
				t.Helper()
				eventually(t, "b sees "+boot, func() bool { v, ok := b.Nodes.Get("n_a"); return ok && v.Boot == boot })
			}
			renew("first")
			back := ns.Snapshot()
			for i := range 20 {
				renew(fmt.Sprint(i))
			}
			sees("19")
			lose(ns, back)
			a.Close()
			a = openAt(t, cfg)
			renew("second")
			sees("second")
			if err := a.Nodes.Leave(t.Context(), "n_a"); err != nil {
				t.Fatal(err)
			}
			eventually(t, "a has left", func() bool { _, ok := b.Nodes.Get("n_a"); return !ok })
		})
	}
}
