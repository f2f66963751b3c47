package relay

import (
	"testing"
	"time"

	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// TestClientsThatAreNoLongerAreForgotten uses a client that exists, one that is revoked,
// and one whose name now belongs to another client.
func TestClientsThatAreNoLongerAreForgotten(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	ids := map[string]string{}
	for _, name := range []string{"there", "revoked", "renamed"} {
		r.client(t, name)
		c, _ := r.store.Clients.Get(name)
		ids[name] = c.ID
		if _, err := r.store.Usages.Add(t.Context(), c.ID, store.MonthOf(time.Now()), store.Tally{In: 1, Out: 2}); err != nil {
			t.Fatal(err)
		}
		if err := r.store.Activities.Note(t.Context(), c.ID, store.Seen{At: time.Now()}, nil); err != nil {
			t.Fatal(err)
		}
		if err := r.store.Proofs.Set(t.Context(), store.Proof{Domain: name + ".example", ClientID: c.ID}); err != nil {
			t.Fatal(err)
		}
		r.accounts.Of(c.ID)
	}
	for _, name := range []string{"revoked", "renamed"} {
		if _, err := r.Clients().Revoke(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	r.client(t, "renamed")
	var f forgetting
	now := time.Now()
	left := func(after time.Duration) map[string]bool {
		f.turn(t.Context(), r.Relay, now.Add(after))
		kept := map[string]bool{}
		for name, id := range ids {
			_, seen := r.store.Activities.Get(id)
			_, proved := r.store.Proofs.Get(name + ".example")
			account := r.accounts.Has(id)
			used := r.store.Usages.Get(id, store.MonthOf(now)).Out > 0
			if seen != proved || seen != account || seen != used {
				t.Errorf("of %s a part is left: seen %v, proved %v, account %v, usage %v", name, seen, proved, account, used)
			}
			kept[name] = seen
		}
		return kept
	}
	for _, c := range []struct {
		after                     time.Duration
		there, revoked, different bool
	}{
		{0, true, true, true},
		{keepUnknown / 2, true, true, true},
		{keepUnknown, true, true, false},
		{keepRevoked - time.Hour, true, true, false},
		{keepRevoked + time.Hour, true, false, false},
	} {
		got := left(c.after)
		if got["there"] != c.there || got["revoked"] != c.revoked || got["renamed"] != c.different {
			t.Errorf("after %v: %v", c.after, got)
		}
	}
	r.accounts.Settle(t.Context())
}

// TestNamesOfAClientThatIsNoLongerAreGivenBack makes a claim arrive after its client was
// revoked, like one that was in progress at another node.
func TestNamesOfAClientThatIsNoLongerAreGivenBack(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	gone, _, err := r.Clients().Add(t.Context(), "gone", Scope{})
	if err != nil {
		t.Fatal(err)
	}
	there, _, err := r.Clients().Add(t.Context(), "there", Scope{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Clients().Revoke(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	take := func(name, client string) string {
		t.Helper()
		target := claims.TargetDomain(name + ".relay.test")
		h := claims.Holder{Slot: claims.SlotTLS, Instance: "i1", Key: name, Type: wire.TypeHTTPS, Mode: wire.ModeStandard}
		if _, err := r.store.Claims.Take(t.Context(), target, client, h, r.gone); err != nil {
			t.Fatal(err)
		}
		return target
	}
	revoked, kept, unknown := take("revoked", gone.ID), take("kept", there.ID), take("unknown", "c_nobody")
	has := func(target string) bool { _, ok := r.store.Claims.Get(target); return ok }
	var f forgetting
	now := time.Now()
	f.turn(t.Context(), r.Relay, now)
	if has(revoked) {
		t.Error("a revoked client's name is still taken")
	}
	// Word of a new client may come later than that of its claim.
	if f.turn(t.Context(), r.Relay, now.Add(keepUnknown-time.Second)); !has(unknown) {
		t.Error("the name of a client that is not known yet was given away")
	}
	if f.turn(t.Context(), r.Relay, now.Add(keepUnknown)); has(unknown) {
		t.Error("the name of nobody is still taken")
	}
	if !has(kept) {
		t.Error("a client lost its name")
	}
}
