package store

import (
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/store/natstest"
)

// TestWhoWasHeardLastIsListedWithoutNATS checks that such nodes remain listed, as entries do,
// so that a node that is cut off does not consider itself the only one. NATS may be gone for a
// while before that is noticed.
func TestWhoWasHeardLastIsListedWithoutNATS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a announced
		listed := listing(t, &a)
		a.take(Node{ID: "n_a", Boot: "said"})
		a.take(Node{ID: "n_b", Boot: "said"})
		time.Sleep(NodeLease + time.Second)
		listed("without a word for as long as a lease")
		a.hold(true)
		listed("when it is found that there is no NATS", "n_a said", "n_b said")
		time.Sleep(time.Hour)
		listed("an hour later", "n_a said", "n_b said")
		a.hold(false)
		listed("back at NATS", "n_a said", "n_b said")
		time.Sleep(NodeLease)
		listed("a lease later", "n_a said", "n_b said")
		time.Sleep(time.Second)
		listed("when nobody was heard again")
		time.Sleep(time.Hour)
		listed("after an hour")
		a.hold(true)
		listed("without NATS, long after that")
	})
}

// TestNodesKnowWhetherTheyCanHearOthers checks that this follows the state of the connection.
func TestNodesKnowWhetherTheyCanHearOthers(t *testing.T) {
	ns := natstest.Start(t)
	a := &openAt(t, Config{URLs: []string{ns.URL()}}).Nodes.announced
	heard := func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.held == 0
	}
	for range 2 {
		ns.Stop()
		eventually(t, "nobody can be heard", func() bool { return !heard() })
		ns.Start()
		eventually(t, "who is there can be heard", heard)
	}
}
