package relay

import (
	"net/http"
	"testing"

	"adit/tunnel/relay/backup"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/natstest"
	"adit/tunnel/wire"
)

// TestRestoredNodesDoNotTakeWhatTheLostStoreHad restores what NATS has lost while a node
// keeps running. That node's revisions are of a store that no longer exists. What is set
// at a restarted node holds there, and nothing can be set at a node that was not
// restarted.
func TestRestoredNodesDoNotTakeWhatTheLostStoreHad(t *testing.T) {
	t.Parallel() // most of it is waiting
	server := natstest.Start(t)
	c := &testNodes{tb: t, dir: t.TempDir(), urls: []string{server.URL()}}
	old := c.add()
	token := old.client(t, "shop")
	shut, open := []byte(`{"deny":["0.0.0.0/0"]}`), []byte(`{}`)
	target := claims.TargetDomain("shop.relay.test")
	set := func(r *testRelay, policy []byte) {
		t.Helper()
		if err := r.store.Policies.Set(t.Context(), target, policy); err != nil {
			t.Fatal(err)
		}
	}
	a := connect(t, token, "i1")
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("hello")))
	set(old, open)
	document := old.backup(t)
	for range 20 { // so that no revision after the restore is as high
		set(old, shut)
		set(old, open)
	}
	server.Empty()
	eventually(t, "the node says that the store is lost", func() bool { return old.store.Condition() == store.Lost })
	if _, err := backup.Restore(t.Context(), c.config(2), document); err != nil {
		t.Fatal(err)
	}
	anew := c.add()
	c.awaitWhole(c.all...)
	visitor := &http.Client{Transport: &http.Transport{}}
	everywhere(t, c.all, visitor, "shop.relay.test", "hello")
	set(anew, shut)
	if status, _ := anew.page(t, visitor, "shop.relay.test"); status != http.StatusForbidden {
		t.Errorf("a policy that was set after the restore lets a visitor in: %d", status)
	}
	if err := old.store.Policies.Set(t.Context(), target, open); err == nil {
		t.Error("a node that knows the lost store alone says that it has set a policy")
	}
	if status, _ := anew.page(t, visitor, "shop.relay.test"); status != http.StatusForbidden {
		t.Errorf("what the node of before has tried lets a visitor in: %d", status)
	}
}
