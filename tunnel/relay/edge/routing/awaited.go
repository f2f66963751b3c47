package routing

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/wildcard"
	"adit/tunnel/relay/edge/visitor"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// Limits on visitors that wait at the same time. Each of them holds its connection and the
// head of its request.
const (
	mostAwaiting   = 1024
	mostOfOneAwait = 256
)

// awaited keeps the faces whose last tunnel was lost with its session, each for a limited
// time. An agent that restarts is back within that time, and visitors wait for it. The zero
// value is ready to use.
type awaited struct {
	mu       sync.Mutex
	closed   bool
	byPlace  map[string]*awaiting
	visitors int
	passing  atomic.Int32 // how many are of type tls
}

// awaiting is one face that visitors may wait for.
type awaiting struct {
	face     Face
	last     *Backend // the tunnel whose session ended; nil if unknown
	port     Port     // kept open for visitors meanwhile; nil: none
	over     chan struct{}
	timer    *time.Timer
	visitors int
}

func (of *awaiting) passes() bool { return of.face.Type == wire.TypeTLS }

// expect makes visitors of a face wait for up to limit. It reports whether port is kept open
// for them. A udp port is not, since packets cannot wait.
func (a *awaited) expect(f Face, last *Backend, port Port, limit time.Duration) (kept bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || limit <= 0 || a.byPlace[f.Place()] != nil {
		return false
	}
	if a.byPlace == nil {
		a.byPlace = make(map[string]*awaiting)
	}
	of := &awaiting{face: f, last: last, over: make(chan struct{})}
	if f.Type == wire.TypeTCP {
		of.port = port
	}
	of.timer = time.AfterFunc(limit, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.byPlace[f.Place()] == of { // not if another wait has replaced it
			a.remove(of)
		}
	})
	a.byPlace[f.Place()] = of
	if of.passes() {
		a.passing.Add(1)
	}
	return of.port != nil
}

// take returns the port that was kept open for a face, or nil.
func (a *awaited) take(f Face) (port Port) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := a.byPlace[f.Place()]; of != nil {
		port, of.port = of.port, nil
	}
	return port
}

// end releases those who wait for a face.
func (a *awaited) end(f Face) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := a.byPlace[f.Place()]; of != nil {
		a.remove(of)
	}
}

// remove releases those who wait for of. The caller holds a.mu.
func (a *awaited) remove(of *awaiting) {
	of.timer.Stop()
	close(of.over)
	delete(a.byPlace, of.face.Place())
	if of.passes() {
		a.passing.Add(-1)
	}
	if of.port != nil {
		of.port.Close()
	}
}

// close releases everybody who waits, and makes later calls of expect do nothing.
func (a *awaited) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, of := range a.byPlace {
		a.remove(of)
	}
}

// wait waits for the first of the places that is awaited and for which asked returns true. It
// reports whether there was one; by then the face may be served, or the wait may have timed
// out.
func (a *awaited) wait(ctx context.Context, asked func(*awaiting) bool, places ...string) bool {
	of := a.enter(asked, places)
	if of == nil {
		return false
	}
	select {
	case <-of.over:
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	of.visitors--
	a.visitors--
	return true
}

func (a *awaited) enter(asked func(*awaiting) bool, places []string) *awaiting {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, place := range places {
		if of := a.byPlace[place]; of != nil && asked(of) && of.visitors < mostOfOneAwait && a.visitors < mostAwaiting {
			of.visitors++
			a.visitors++
			return of
		}
	}
	return nil
}

func whoever(*awaiting) bool { return true }

// Expect makes visitors of a face that is not served wait for up to Config.Grace, because it
// may be served soon.
func (t *Table) Expect(f Face) { t.expect(f, nil, nil) }

func (t *Table) expect(f Face, last *Backend, port Port) (kept bool) {
	return t.cfg.MayBeBack(f.Target) && t.awaited.expect(f, last, port, t.cfg.Grace)
}

// GiveUp ends all waiting for a target.
func (t *Table) GiveUp(target string) {
	for _, slot := range claims.Slots() {
		t.awaited.end(Face{Target: target, Slot: slot})
	}
}

// Await waits for an awaited site of a name, in one of the slots, to be served. It reports
// whether there was one to wait for.
func (t *Table) Await(ctx context.Context, name string, slots ...string) bool {
	return t.awaited.wait(ctx, whoever, t.placesOf(name, slots...)...)
}

// AwaitPassing is Await for a name whose TLS is passed through undecrypted.
func (t *Table) AwaitPassing(ctx context.Context, name string) bool {
	return t.awaited.passing.Load() > 0 && t.awaited.wait(ctx, (*awaiting).passes, t.placesOf(name, claims.SlotTLS)...)
}

// AwaitFace is Await for a face on whose port visitors have already arrived.
func (t *Table) AwaitFace(ctx context.Context, f Face) bool {
	return t.awaited.wait(ctx, whoever, f.Place())
}

// AwaitPrivate is Await for a private tunnel that admitted the guest.
func (t *Table) AwaitPrivate(ctx context.Context, target string, g visitor.Guest) bool {
	invited := func(of *awaiting) bool { return of.last != nil && of.last.invites(g) }
	return t.awaited.wait(ctx, invited, Face{Target: target, Slot: claims.SlotPrivate}.Place())
}

// placesOf returns the places at which sites of a name may be, the name's own first.
func (t *Table) placesOf(name string, slots ...string) (places []string) {
	targets := []string{claims.TargetDomain(name)}
	if all := wildcard.Of(name); all != "" && !t.cfg.Alone(name) {
		targets = append(targets, claims.TargetDomain(all))
	}
	for _, target := range targets {
		for _, slot := range slots {
			places = append(places, Face{Target: target, Slot: slot}.Place())
		}
	}
	return places
}
