package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// guardedBy returns the claim of an ephemeral tunnel that nobody on this machine may
// visit.
func guardedBy(domain string) wire.Claim {
	return wire.Claim{
		Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: domain, Ephemeral: true,
		Policy: json.RawMessage(`{"deny":["127.0.0.1"]}`), PolicyReplaces: true,
	}
}

// servedTwice sets up a guarded tunnel with the name old, of an agent with two sessions.
func servedTwice(t *testing.T, r *testRelay) (first, second *fakeAgent, origin, url string) {
	t.Helper()
	token := r.scoped(t, "shop", scope.Scope{OwnPolicies: true})
	first, second = connect(t, token, "i1"), connect(t, token, "i1")
	origin = startOrigin(t, text("x"))
	url = first.mustClaim("k", guardedBy("old"), origin).PublicURL
	second.mustClaim("k", guardedBy("old"), origin)
	return first, second, origin, url
}

// TestANameThatIsLeftStaysGuarded moves a tunnel of an agent with two sessions. The first
// session gives back its old name and the policy while the second still serves the name.
func TestANameThatIsLeftStaysGuarded(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	v, target := r.visitor(t), claims.TargetDomain("old."+r.cfg.Domain)
	url := "http://" + withPort("old."+r.cfg.Domain, portOf(r.edge.HTTPAddr()), 80)
	record, deleted := r.book.Record, new(atomic.Bool)
	r.book.Record = func(ctx context.Context, action, of string, detail any) {
		record(ctx, action, of, detail)
		if action == "policy.delete" {
			deleted.Store(true)
			if status, _ := get(t, v, url); status != http.StatusForbidden {
				t.Errorf("as its policy is deleted, a visitor of the old name gets status %d", status)
			}
		}
	}
	first, second, origin, _ := servedTwice(t, r)
	first.mustClaim("k", guardedBy("new"), origin)
	if _, there := r.store.Policies.Get(target); there || !deleted.Load() {
		t.Fatal("the policy of the old name is not deleted")
	}
	if status, _ := get(t, v, url); status != http.StatusForbidden {
		t.Errorf("at the other session a visitor of the old name gets status %d", status)
	}
	second.mustClaim("k", guardedBy("new"), origin)
	if status, _ := get(t, v, url); status != http.StatusNotFound {
		t.Errorf("when nobody serves it, a visitor of the old name gets status %d", status)
	}
	eventually(t, "its policy is in force no more", func() bool { return r.policies.Get(target) == nil })
}

// TestATunnelWithoutAClaimKeepsItsPolicy makes a tunnel take its claim again after its
// name and policy were given back while it ran.
func TestATunnelWithoutAClaimKeepsItsPolicy(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	first, _, origin, url := servedTwice(t, r)
	first.mustClaim("k", guardedBy("new"), origin)
	target := claims.TargetDomain("old." + r.cfg.Domain)
	now := time.Now()
	r.reclaim(t.Context(), now)
	r.reclaim(t.Context(), now.Add(sweepTime))
	if _, ok := r.store.Claims.Get(target); !ok {
		t.Fatal("the claim is not taken anew")
	}
	if _, ok := r.store.Policies.Get(target); !ok {
		t.Error("the policy is not stored again")
	}
	if status, _ := get(t, r.visitor(t), url); status != http.StatusForbidden {
		t.Errorf("a visitor gets status %d", status)
	}
}

// TestAPolicyIsNotDeletedUnderANewClaim gives a name back such that the check of who has
// it comes before another session claims it.
func TestAPolicyIsNotDeletedUnderANewClaim(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.scoped(t, "shop", scope.Scope{OwnPolicies: true})
	first := connect(t, token, "i1")
	g := first.mustClaim("k", guardedBy("old"), startOrigin(t, text("x")))
	target := claims.TargetDomain("old." + r.cfg.Domain)
	s := r.roster.All()[0]
	p, _ := r.store.Policies.Get(target)
	if err := r.store.Claims.Release(t.Context(), target, s.client.ID, "i1", "k"); err != nil {
		t.Fatal(err)
	}
	change := s.leaving(p)
	again := guardedBy("old")
	again.PolicyReplaces = false // as after a loss of the session
	connect(t, token, "i2").mustClaim("k", again, startOrigin(t, text("x")))
	if err := r.book.Delete(t.Context(), change); err == nil {
		t.Error("the policy is deleted")
	}
	if status, _ := get(t, r.visitor(t), g.PublicURL); status != http.StatusForbidden {
		t.Errorf("a visitor gets status %d", status)
	}
}

// TestANameThatIsLeftStaysGuardedAtOtherNodes has the second session at another node,
// which hears of the policy and of the claim in any order.
func TestANameThatIsLeftStaysGuardedAtOtherNodes(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 3)
	token := c.all[0].scoped(t, "shop", scope.Scope{OwnPolicies: true})
	for _, r := range c.all {
		eventually(t, "all know the client", func() bool { _, ok := r.store.Clients.Get("shop"); return ok })
	}
	first, second := connect(t, token, "i1"), connect(t, c.all[1].at(token), "i1")
	origin := startOrigin(t, text("x"))
	v := &http.Client{Transport: &http.Transport{}}
	for round := range 5 {
		old, next := fmt.Sprintf("old%d", round), fmt.Sprintf("new%d", round)
		target := claims.TargetDomain(old + ".relay.test")
		first.mustClaim("k", guardedBy(old), origin)
		for _, r := range c.all {
			eventually(t, "all serve the old name", func() bool { status, _ := r.page(t, v, old+".relay.test"); return status == http.StatusForbidden })
		}
		second.mustClaim("k", guardedBy(old), origin)
		first.mustClaim("k", guardedBy(next), origin)
		for _, r := range c.all {
			eventually(t, "all have heard that the old name is left", func() bool {
				if status, _ := r.page(t, v, old+".relay.test"); status == http.StatusOK {
					t.Fatal("a visitor of the old name is let in")
				}
				_, guarded := r.store.Policies.Get(target)
				_, claimed := r.store.Claims.Get(target)
				return !guarded && !claimed
			})
		}
		if status, _ := c.all[1].page(t, v, old+".relay.test"); status != http.StatusForbidden {
			t.Errorf("where it is served still, a visitor of the old name gets status %d", status)
		}
		second.mustClaim("k", guardedBy(next), origin)
		for _, r := range c.all {
			eventually(t, "nobody serves the old name", func() bool { status, _ := r.page(t, v, old+".relay.test"); return status == http.StatusNotFound })
			eventually(t, "its policy is in force no more", func() bool { return r.policies.Get(target) == nil })
		}
	}
}
