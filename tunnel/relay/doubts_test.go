package relay

import (
	"context"
	"fmt"
	"testing"
	"time"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// TestClaimThatTheStoreMadeLateIsGivenBack makes a tunnel ask for other names while the
// store is unavailable, and keep the name that it has.
func TestClaimThatTheStoreMadeLateIsGivenBack(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	cfg := testConfig(t.TempDir())
	cfg.NATS.URLs = []string{server.URL()}
	r := startRelay(t, cfg)
	a := connect(t, r.client(t, "shop"), "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "old"}, "")
	s := r.roster.All()[0]
	server.Stop()
	targetOf := func(name string) string { return claims.TargetDomain(name + ".relay.test") }
	for _, name := range []string{"late", "late", "kept", "anew"} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := s.alone(func() error {
			_, err := s.claim(ctx, "k", wire.Claim{Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: name})
			return err
		})
		cancel()
		if err == nil {
			t.Fatal("a store that is away has answered")
		}
	}
	tried := r.doubts.at(targetOf("late"))[served{s, "k"}]
	if !tried.first.Before(tried.last) {
		t.Fatalf("the claim was tried for first at %s and last at %s", tried.first, tried.last)
	}
	server.Start()
	eventually(t, "the store is back", r.store.Connected)

	// made is a claim that the store makes, of a try or of the tunnel at another node.
	made := func(name string, begun time.Time) {
		t.Helper()
		h := claims.Holder{Slot: claims.SlotPlain, Instance: "i1", Key: "k", Type: wire.TypeHTTP, Mode: wire.ModeStandard}
		c := claims.Claim{Target: targetOf(name), ClientID: s.client.ID, Created: begun, Holders: []claims.Holder{h}}
		if err := r.store.Claims.Put(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	has := func(name string) bool { _, ok := r.store.Claims.Get(targetOf(name)); return ok }
	for _, begun := range []time.Time{tried.first, tried.last} {
		for _, of := range []time.Time{tried.first, tried.last} { // the first turn has ended the doubt
			r.doubts.add(claims.Claim{Target: targetOf("late"), Created: of}, served{s, "k"})
		}
		made("late", begun)
		eventually(t, "the name is given back", func() bool { return !has("late") && len(r.doubts.at(targetOf("late"))) == 0 })
	}
	made("anew", time.Now())
	s.undo(t.Context(), targetOf("anew"), "k", r.doubts.at(targetOf("anew"))[served{s, "k"}])
	if !has("anew") {
		t.Error("a claim was given back that was never in doubt")
	}
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "kept"}, "")
	eventually(t, "what the tunnel has is in doubt no longer", func() bool { return len(r.doubts.at(targetOf("kept"))) == 0 })
	if !has("kept") || has("old") {
		t.Errorf("of a tunnel that moved its name is there: %t, and its old one: %t", has("kept"), has("old"))
	}
	a.close()
	eventually(t, "an ended session has no doubts", func() bool { return len(r.doubts.targets()) == 0 })
}

// TestASessionHasSoManyDoubts uses an agent that endlessly makes claims and gives them
// up.
func TestASessionHasSoManyDoubts(t *testing.T) {
	var d doubts
	s, other := new(session), new(session)
	for i := range 3 * maxDoubts {
		for range 2 {
			d.add(claims.Claim{Target: fmt.Sprint(i)}, served{s, "k"})
		}
	}
	d.add(claims.Claim{Target: "last"}, served{other, "k"})
	if got := len(d.targets()); got != maxDoubts+1 || len(d.at("last")) != 1 {
		t.Errorf("there are %d, and %d of another session's", got, len(d.at("last")))
	}
	d.drop(func(target string, _ served) bool { return target == "0" })
	d.add(claims.Claim{Target: "next"}, served{s, "k"})
	if len(d.at("0")) != 0 || len(d.at("next")) != 1 {
		t.Errorf("after one was dropped: %d of it, and %d of the next", len(d.at("0")), len(d.at("next")))
	}
	d.drop(func(string, served) bool { return true })
	if len(d.targets()) != 0 || len(d.of) != 0 {
		t.Errorf("all dropped: %d targets, %d sessions", len(d.targets()), len(d.of))
	}
}
