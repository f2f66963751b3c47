package routing

import (
	"errors"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"

	"adit/tunnel/relay/edge/origin/origintest"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// port notes what is done with it.
type port struct {
	stopped bool
	closed  atomic.Bool
	ended   func(*Backend) bool // which flows were ended last
}

func (p *port) StopAccepting() { p.stopped = true }
func (p *port) Close()         { p.closed.Store(true) }
func (p *port) EndFlows(pick func(*Backend, netip.Addr) bool) {
	p.ended = func(b *Backend) bool { return pick(b, netip.Addr{}) }
}

// site is a table whose endpoints have ports.
func site() *Table {
	return New(Config{Open: func(*Endpoint) (Port, error) { return new(port), nil }})
}

func tunnelOf(client, key, node string) *Backend {
	return &Backend{Key: key, Agent: &Agent{ClientID: client, Instance: "i", Node: node, Session: new(origintest.Session)}}
}

func attach(t *testing.T, table *Table, f Face, b *Backend) *Endpoint {
	t.Helper()
	ep, err := table.Attach(f, b)
	if err != nil {
		t.Fatal(err)
	}
	return ep
}

func web(kind, mode string) Face {
	return Face{Target: claims.TargetDomain("shop.test"), Slot: claims.SlotTLS, Type: kind, Mode: mode, Domain: "shop.test"}
}

// TestAnotherTypeOrModeIsAnotherEndpoint claims a tunnel again with another type or mode while
// it has a visitor. The visitor stays on the old endpoint.
func TestAnotherTypeOrModeIsAnotherEndpoint(t *testing.T) {
	for name, next := range map[string]Face{
		"type": web(wire.TypeTLS, wire.ModeStandard),
		"mode": web(wire.TypeHTTPS, wire.ModeBalanced),
	} {
		t.Run(name, func(t *testing.T) {
			table := site()
			b := tunnelOf("c", "k", "")
			first := attach(t, table, web(wire.TypeHTTPS, wire.ModeStandard), b)
			_, guest := first.Enter(t.Context(), nil)
			first.Meter.CountIn(3)
			first.Meter.CountOut(5)
			second := attach(t, table, next, b)
			if second == first || second.Face != next || table.own("shop.test", claims.SlotTLS) != second {
				t.Fatalf("the endpoint is %+v, want one of %+v", second.Face, next)
			}
			if want := next.Type == wire.TypeTLS; table.Passes() != want || table.PassThrough("shop.test") == second != want {
				t.Errorf("TLS passes through: %v, want %v", table.Passes(), want)
			}
			if p := first.port.(*port); !p.closed.Load() || second.port.(*port).closed.Load() {
				t.Errorf("the first port is closed: %v, the second: %v", p.closed.Load(), second.port.(*port).closed.Load())
			}
			figures := func(want ...*Endpoint) {
				t.Helper()
				if in, out := table.Bytes(); in != 3 || out != 5 {
					t.Errorf("%d bytes came and %d went, want 3 and 5", in, out)
				}
				all := table.All()
				if len(all) != len(want) || slices.ContainsFunc(want, func(ep *Endpoint) bool { return !slices.Contains(all, ep) }) {
					t.Errorf("visitors may be on %d endpoints, want %d", len(all), len(want))
				}
			}
			figures(first, second)
			_, late := first.Enter(t.Context(), nil) // who had found it before
			first.Leave(guest)
			figures(first, second)
			first.Leave(late)
			figures(second)
			_, later := first.Enter(t.Context(), nil)
			figures(first, second)
			first.Leave(later)
			figures(second)
			table.Detach(next, b)
			if table.Serves(next.Target) || table.Passes() || !second.port.(*port).closed.Load() {
				t.Error("it is served though its only tunnel is gone")
			}
			figures()
		})
	}
}

// TestWhichTunnelsAreBehindAnEndpoint attaches tunnels, and ways to them by other nodes.
func TestWhichTunnelsAreBehindAnEndpoint(t *testing.T) {
	for _, mode := range []string{wire.ModeStandard, wire.ModeBalanced} {
		t.Run(mode, func(t *testing.T) {
			table, f := site(), web(wire.TypeHTTPS, mode)
			far, near, again := tunnelOf("c", "k", "n2"), tunnelOf("c", "k", ""), tunnelOf("c", "k", "")
			others := []*Backend{tunnelOf("c", "l", ""), tunnelOf("d", "k", "")}
			ep := attach(t, table, f, far)
			has := func(when string, best, spare []*Backend) {
				t.Helper()
				if got := ep.Backends(); len(got) != len(best) || slices.ContainsFunc(best, func(b *Backend) bool { return !slices.Contains(got, b) }) {
					t.Errorf("%s: %d tunnels, want %d, or others", when, len(got), len(best))
				}
				if got := ep.all(); len(got) != len(best)+len(spare) || !slices.Equal(got[len(best):], spare) {
					t.Errorf("%s: %d ways, want %d, or others or in another order", when, len(got), len(best)+len(spare))
				}
				if got := ep.Pick(); len(got) != len(best)+len(spare) || !slices.Equal(got[len(best):], spare) {
					t.Errorf("%s: %d ways are tried, want %d", when, len(got), len(best)+len(spare))
				}
			}
			attach(t, table, f, near)
			has("a way of this node's", []*Backend{near}, []*Backend{far})
			again.Agent = near.Agent
			attach(t, table, f, again)
			has("claimed again", []*Backend{again}, []*Backend{far})
			third := tunnelOf("c", "k", "n3")
			attach(t, table, f, third)
			again.Agent.Leaving.Store(true)
			table.Reorder(f)
			has("a way that is leaving", []*Backend{third}, []*Backend{far, again})
			again.Agent.Leaving.Store(false)
			table.Reorder()
			table.Reorder(Face{Target: "another", Slot: f.Slot})
			has("another face's change", []*Backend{third}, []*Backend{far, again})
			table.Reorder(f)
			has("one that is not leaving", []*Backend{again}, []*Backend{far, third})
			again.Agent.Unheard.Store(true)
			table.Reorder(f)
			has("one that is not heard", []*Backend{far}, []*Backend{third, again})
			again.Agent.Unheard.Store(false)
			table.Reorder(f)
			has("one that is heard again", []*Backend{again}, []*Backend{third, far})
			table.Detach(f, third)
			table.Detach(f, far)
			has("without other ways", []*Backend{again}, nil)
			if ep.port.(*port).ended != nil {
				t.Error("flows of a tunnel that has another way were ended")
			}
			next := tunnelOf("c", "k", "")
			attach(t, table, f, next)
			if ended := ep.port.(*port).ended; ended == nil || !ended(again) || ended(next) {
				t.Error("flows of a session that the agent has left were not ended, or others'")
			}
			again = next
			want := []*Backend{again}
			for _, b := range others {
				attach(t, table, f, b)
				if mode == wire.ModeStandard {
					want = nil
				}
				want = append(want, b)
			}
			has("other tunnels", want, nil)
			if mode == wire.ModeBalanced {
				table.Detach(f, again)
				if ended := ep.port.(*port).ended; ended == nil || !ended(far) || ended(others[0]) || ended(others[1]) {
					t.Error("flows of the tunnel that is gone were not ended, or others'")
				}
				has("one less", others, nil)
			}
		})
	}
}

// TestAWildcardsNamesShareACertificate matters because strangers can ask for any number of
// names.
func TestAWildcardsNamesShareACertificate(t *testing.T) {
	table := attached(t, nil, "*.shop.test", "own.shop.test")
	for name, want := range map[string]string{"a.shop.test": "*.shop.test", "own.shop.test": "own.shop.test", "shop.test": "shop.test", "": ""} {
		if got := table.ShownAs(name); got != want {
			t.Errorf("%q is remembered as %q, want %q", name, got, want)
		}
	}
}

// TestInvitationsAreOfOthersTunnels checks that each guest sees only the tunnels that it may
// visit.
func TestInvitationsAreOfOthersTunnels(t *testing.T) {
	table := site()
	private := func(name string) Face {
		return Face{Target: claims.TargetPrivate("nas", name), Slot: claims.SlotPrivate, Type: wire.TypeTCP, Mode: wire.ModePrivate}
	}
	for name, visitors := range map[string][]string{"own": nil, "some": {"laptop"}, "all": {wire.AnyClient}} {
		b := tunnelOf("nas-id", name, "")
		b.Visitors = visitors
		attach(t, table, private(name), b)
	}
	attach(t, table, web(wire.TypeHTTPS, wire.ModeStandard), tunnelOf("nas-id", "web", ""))
	for _, c := range []struct {
		client, id, instance string
		want                 []string
	}{
		{"laptop", "laptop-id", "i", []string{"all", "some"}},
		{"phone", "phone-id", "i", []string{"all"}},
		{"nas", "nas-id", "j", []string{"all", "own", "some"}},
		{"nas", "nas-id", "i", nil},
	} {
		var want []Face
		for _, name := range c.want {
			want = append(want, private(name))
		}
		if got := table.Invitations(visitor.Guest{Client: c.client, ClientID: c.id}, c.instance); !slices.Equal(got, want) {
			t.Errorf("%s at %s is invited to %v, want %v", c.client, c.instance, got, want)
		}
	}
}

// TestNothingIsAttachedAtTheEnd stops ports from accepting and closes all endpoints.
func TestNothingIsAttachedAtTheEnd(t *testing.T) {
	table, f := site(), web(wire.TypeHTTPS, wire.ModeStandard)
	p := attach(t, table, f, tunnelOf("c", "k", "")).port.(*port)
	table.StopAccepting()
	if _, err := table.Attach(f, tunnelOf("c", "k", "")); !errors.Is(err, ErrEnding) || !p.stopped || p.closed.Load() {
		t.Errorf("attached with %v; the port has stopped: %v, is closed: %v", err, p.stopped, p.closed.Load())
	}
	if table.Close(); !p.closed.Load() || table.Serves(f.Target) {
		t.Error("it is served after the end")
	}
}
