package routing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

func named(domain string) Face {
	return Face{Target: claims.TargetDomain(domain), Slot: claims.SlotPlain, Type: wire.TypeHTTP, Mode: wire.ModeStandard, Domain: domain}
}

// TestVisitorsWaitForAnAgentThatMayBeBack, for so long and no longer, and not for what
// somebody has stopped.
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
		"the relay began":     {"other.test", func(t *Table, _ Face, _ *Backend) { t.Expect(named(name).Target) }, func(*Table, context.CancelFunc) {}, true, grace},
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
				waits := table.Await(ctx, name)
				if took := time.Since(begin); waits != c.waits || took != c.took {
					t.Errorf("waited: %v, for %v; want %v, %v", waits, took, c.waits, c.took)
				}
				time.Sleep(2 * grace) // past all timers: those of one moment fire in no order
				synctest.Wait()
				if a := &table.awaited; len(a.byTarget) != 0 || a.visitors != 0 {
					t.Errorf("in the end %d targets are awaited, by %d", len(a.byTarget), a.visitors)
				}
			})
		})
	}
}

// TestFewWaitAtOnce: each holds a connection and memory.
func TestFewWaitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(Config{Grace: time.Minute})
		const names = 2 * mostAwaiting / mostOfOneAwait
		for i := range names {
			table.Expect(claims.TargetDomain(string(rune('a'+i)) + ".test"))
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for i := range names {
			for n := range mostOfOneAwait + 1 {
				waits := make(chan bool, 1)
				go func() { waits <- table.Await(ctx, string(rune('a'+i))+".test") }()
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
