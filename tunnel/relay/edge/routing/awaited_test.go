package routing

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

func named(domain string) Face {
	return Face{Target: claims.TargetDomain(domain), Slot: claims.SlotPlain, Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: domain}
}

// TestVisitorsWaitForAnAgentThatMayBeBack checks that visitors wait for the grace period and
// no longer, and not at all for a tunnel that was stopped.
func TestVisitorsWaitForAnAgentThatMayBeBack(t *testing.T) {
	const grace, name = 3 * time.Second, "shop.test"
	for what, c := range map[string]struct {
		face  string
		begin func(*Table, Face, *Backend)
		then  func(*Table, context.CancelFunc)
		waits bool
		took  time.Duration
	}{
		"it is lost for good": {name, (*Table).Lose, func(*Table, context.CancelFunc) {}, true, grace},
		"it is back":          {name, (*Table).Lose, func(t *Table, _ context.CancelFunc) { t.Attach(named(name), tunnelOf("c", "k", "")) }, true, time.Second},
		"all of its wildcard": {"*.test", (*Table).Lose, func(t *Table, _ context.CancelFunc) { t.Attach(named("*.test"), tunnelOf("c", "k", "")) }, true, time.Second},
		"the visitor leaves":  {name, (*Table).Lose, func(_ *Table, leave context.CancelFunc) { leave() }, true, time.Second},
		"the relay ends":      {name, (*Table).Lose, func(t *Table, _ context.CancelFunc) { t.StopAccepting() }, true, time.Second},
		"it was stopped":      {name, (*Table).Detach, func(*Table, context.CancelFunc) {}, false, 0},
		"another was lost":    {"other.test", (*Table).Lose, func(*Table, context.CancelFunc) {}, false, 0},
		"the relay began":     {"other.test", func(t *Table, _ Face, _ *Backend) { t.Expect(named(name)) }, func(*Table, context.CancelFunc) {}, true, grace},
		"the relay ends already": {name, func(t *Table, f Face, b *Backend) {
			t.StopAccepting()
			t.Lose(f, b)
		}, func(*Table, context.CancelFunc) {}, false, 0},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				table := New(Config{Grace: grace})
				face, b := named(c.face), tunnelOf("c", "k", "")
				attach(t, table, face, b)
				c.begin(table, face, b)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				time.AfterFunc(time.Second, func() { c.then(table, leave) })
				begin := time.Now()
				waits := table.Await(ctx, name, claims.SlotPlain)
				if took := time.Since(begin); waits != c.waits || took != c.took {
					t.Errorf("waited: %v, for %v; want %v, %v", waits, took, c.waits, c.took)
				}
				time.Sleep(2 * grace) // past all timers: those of one moment fire in no order
				synctest.Wait()
				if a := &table.awaited; len(a.byPlace) != 0 || a.visitors != 0 {
					t.Errorf("in the end %d faces are awaited, by %d", len(a.byPlace), a.visitors)
				}
			})
		})
	}
}

// TestFewWaitAtOnce limits the visitors that wait, since each holds a connection and memory.
func TestFewWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(Config{Grace: time.Minute})
		const names = 2 * mostAwaiting / mostOfOneAwait
		for i := range names {
			table.Expect(named(string(rune('a'+i)) + ".test"))
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for i := range names {
			for n := range mostOfOneAwait + 1 {
				waits := make(chan bool, 1)
				go func() { waits <- table.Await(ctx, string(rune('a'+i))+".test", claims.SlotPlain) }()
				synctest.Wait()
				room := n < mostOfOneAwait && i < names/2
				if waiting := len(waits) == 0; waiting != room {
					t.Fatalf("visitor %d of site %d waits: %v, want %v", n, i, waiting, room)
				}
			}
		}
		leave()
		synctest.Wait()
		if table.awaited.visitors != 0 {
			t.Errorf("%d wait when all have left", table.awaited.visitors)
		}
		table.StopAccepting()
	})
}

// TestPortsAreKeptForConnections checks that ports stay open for connections, which can wait,
// but not for packets, which cannot.
func TestPortsAreKeptForConnections(t *testing.T) {
	const grace = 3 * time.Second
	for what, c := range map[string]struct {
		network string
		then    func(*Table, Face)
		open    bool // when grace has not passed
		opened  int  // in the end, with the tunnel back
	}{
		"it is back":       {"tcp", func(*Table, Face) {}, true, 1},
		"it is udp":        {"udp", func(*Table, Face) {}, false, 2},
		"its time is over": {"tcp", func(*Table, Face) { time.Sleep(grace + 1); synctest.Wait() }, true, 2},
		"it was another's place": {"tcp", func(t *Table, f Face) {
			t.Attach(Face{Target: "tcp.2", Slot: f.Slot, Type: f.Type}, tunnelOf("c", "k", ""))
		}, true, 2},
		"it is nobody's now": {"tcp", func(t *Table, f Face) { t.GiveUp(f.Target) }, true, 2},
		"the relay ends":     {"tcp", func(t *Table, _ Face) { t.StopAccepting() }, true, 1},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var ports []*port
				table := New(Config{Grace: grace, Open: func(*Endpoint) (Port, error) {
					ports = append(ports, new(port))
					return ports[len(ports)-1], nil
				}})
				f := Face{Target: claims.TargetPort(c.network, 1), Slot: claims.SlotPort, Type: c.network}
				b := tunnelOf("c", "k", "")
				attach(t, table, f, b)
				table.Lose(f, b)
				if ports[0].closed.Load() == c.open {
					t.Errorf("the port is closed once it is lost: %v", ports[0].closed.Load())
				}
				c.then(table, f)
				table.Attach(f, b)
				if len(ports) != c.opened {
					t.Errorf("%d ports were opened, want %d", len(ports), c.opened)
				}
				table.StopAccepting()
				table.Close()
				if slices.ContainsFunc(ports, func(p *port) bool { return !p.closed.Load() }) {
					t.Error("a port is open in the end")
				}
			})
		})
	}
}

// TestEachSiteOfANameIsWaitedFor checks that a visitor of the site with TLS does not stop
// waiting when the site without TLS is back.
func TestEachSiteOfANameIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(Config{Grace: 3 * time.Second})
		b := tunnelOf("c", "k", "")
		plain, secure := named("shop.test"), web(wire.TypeHTTPS, wire.ModeStandard)
		for _, f := range []Face{plain, secure} {
			attach(t, table, f, b)
			table.Lose(f, b)
		}
		time.AfterFunc(time.Second, func() { table.Attach(plain, b) })
		time.AfterFunc(2*time.Second, func() { table.Attach(secure, b) })
		begin := time.Now()
		if table.AwaitPassing(t.Context(), "shop.test") || table.Passes() {
			t.Error("its TLS is wanted undecrypted")
		}
		if !table.Await(t.Context(), "shop.test", claims.SlotTLS) || time.Since(begin) != 2*time.Second {
			t.Errorf("waited %v", time.Since(begin))
		}
		table.StopAccepting()
	})
}

// TestWhoPassesAlongIsWaitedFor covers a tunnel whose TLS is passed through, and a private
// one.
func TestWhoPassesAlongIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(Config{Grace: 3 * time.Second})
		b := tunnelOf("c", "k", "")
		b.Visitors = []string{"laptop"}
		sealed := web(wire.TypeTLS, wire.ModeStandard)
		private := Face{Target: claims.TargetPrivate("nas", "ssh"), Slot: claims.SlotPrivate, Type: wire.TypeTCP, Mode: wire.ModePrivate}
		for _, f := range []Face{sealed, private} {
			attach(t, table, f, b)
			table.Lose(f, b)
		}
		if !table.Passes() {
			t.Error("none is expected whose TLS is passed through")
		}
		if table.AwaitPrivate(t.Context(), private.Target, visitor.Guest{Client: "stranger"}) {
			t.Error("a stranger waited, and has learnt of it")
		}
		for what, wait := range map[string]func() bool{
			"the sealed": func() bool { return table.AwaitPassing(t.Context(), "shop.test") },
			"a guest":    func() bool { return table.AwaitPrivate(t.Context(), private.Target, visitor.Guest{Client: "laptop"}) },
		} {
			go func() {
				if !wait() {
					t.Errorf("%s: nobody waited", what)
				}
			}()
		}
		synctest.Wait()
		if table.awaited.visitors != 2 {
			t.Errorf("%d wait", table.awaited.visitors)
		}
		table.StopAccepting()
		synctest.Wait()
		if table.Passes() || table.awaited.visitors != 0 {
			t.Errorf("in the end %d wait", table.awaited.visitors)
		}
	})
}
