package agent

import (
	"sync"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// TestDeclaredChangeThatIsRefusedTakesTheTunnelDown: what is served would be neither
// what adit.toml says nor what it said.
func TestDeclaredChangeThatIsRefusedTakesTheTunnelDown(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	want := definition.Tunnel{Type: wire.TypeHTTP, Name: "shop", Domain: "shop", LocalPort: service(t, echo)}
	declare := func() {
		t.Helper()
		if err := a.Declare(t.Context(), []definition.Tunnel{want}); err != nil {
			t.Fatal(err)
		}
	}
	declare()
	id := declaredID("shop")
	wantTunnel(t, a, id, TunnelRunning)
	stays := r.mustVisit(id, wire.StreamRaw)
	r.set(func() {
		r.onClaim = func(_ string, c wire.Claim) *wire.Problem {
			if c.Domain == "bank" {
				return &wire.Problem{Code: wire.CodeTaken, Message: "taken", Field: "domain"}
			}
			return nil
		}
	})
	want.Domain = "bank"
	declare()
	wantTunnel(t, a, id, TunnelFailed)
	eventually(t, "the relay serves it no longer, and keeps its name", func() bool { _, kept := r.claim(id); return kept && !r.serves(id) })
	if _, err := stays.Read(make([]byte, 1)); err == nil {
		t.Error("a visitor is still there")
	}
	if s, err := r.visit(id, wire.StreamRaw); err == nil {
		s.Reset()
		t.Error("a visitor was served")
	}
	want.Domain = "shop"
	declare()
	wantTunnel(t, a, id, TunnelRunning)
	if s, err := r.visit(id, wire.StreamRaw); err != nil {
		t.Errorf("after it was mended: %v", err)
	} else {
		s.Reset()
	}
}

// TestNodeThatIsTooOldForAChangeServesTheTunnelNoLonger: it would go on with what the
// tunnel was.
func TestNodeThatIsTooOldForAChangeServesTheTunnelNoLonger(t *testing.T) {
	all := newFakeNodes(t, 2)
	all[0].does(wire.FeatureHeaders)
	a, _ := configured(t, all[0], Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: wire.TypeHTTP, LocalPort: service(t, echo)})
	eventually(t, "both nodes serve it", func() bool { return all[1].serves(tun.ID) })
	headers := wire.ChangeHeaders(map[string]string{"Cookie": ""})
	if _, err := a.Change(t.Context(), tun.ID, definition.Patch{RequestHeaders: &headers}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the old node serves it no longer", func() bool { return !all[1].serves(tun.ID) })
	if s, err := all[1].visit(tun.ID, wire.StreamRaw); err == nil {
		s.Reset()
		t.Error("a visitor of the old node was served")
	}
	if s, err := all[0].visit(tun.ID, wire.StreamRaw); err != nil {
		t.Errorf("a visitor of the other: %v", err)
	} else {
		s.Reset()
	}
	headers = wire.HeaderChanges{}
	if _, err := a.Change(t.Context(), tun.ID, definition.Patch{RequestHeaders: &headers}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both serve it again", func() bool { return all[1].serves(tun.ID) })
}

// TestNameThatOneDeclaredTunnelGivesAnother is taken though the relay is asked for it
// before it is given up.
func TestNameThatOneDeclaredTunnelGivesAnother(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	specs := []definition.Tunnel{{Name: "one", Domain: "a", LocalPort: 80}, {Name: "two", Domain: "b", LocalPort: 80}}
	declare := func() {
		t.Helper()
		if err := a.Declare(t.Context(), specs); err != nil {
			t.Fatal(err)
		}
	}
	declare()
	one, two := declaredID("one"), declaredID("two")
	wantTunnel(t, a, one, TunnelRunning)
	wantTunnel(t, a, two, TunnelRunning)
	refused := make(chan struct{})
	var once sync.Once
	r.set(func() {
		r.onClaim = func(key string, c wire.Claim) (no *wire.Problem) {
			if key == two {
				<-refused
				return nil
			}
			r.set(func() {
				if r.claims[two].Domain == c.Domain {
					no = &wire.Problem{Code: wire.CodeTaken, Message: "taken by another tunnel of this client", Field: "domain"}
				}
			})
			if no != nil {
				once.Do(func() { close(refused) })
			}
			return no
		}
	})
	specs[0].Domain, specs[1].Domain = "b", "c"
	declare()
	eventually(t, "both have their new names", func() bool {
		first, _ := a.Tunnel(one)
		second, _ := a.Tunnel(two)
		return first.State == TunnelRunning && first.PublicURL == "https://b.relay.test" && second.State == TunnelRunning && second.PublicURL == "https://c.relay.test"
	})
}
