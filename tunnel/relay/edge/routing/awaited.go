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

// Visitors that may wait at once: each holds its connection and the head of its request.
const (
	mostAwaiting   = 1024
	mostOfOneAwait = 256
)

// awaited are faces whose last tunnel was lost with its session, each for a while: an
// agent that is restarted is back within it, and visitors wait for it. Its zero value is
// ready for use.
type awaited struct {
	mu       sync.Mutex
	closed   bool
	byPlace  map[string]*awaiting
	visitors int
	passing  atomic.Int32 // how many are of type tls
}

// awaiting is a face that is awaited.
type awaiting struct {
	face     Face
	last     *Backend // whose session ended; nil: it is not known
	port     Port     // that visitors come by meanwhile; nil: none
	over     chan struct{}
	timer    *time.Timer
	visitors int
}

func (of *awaiting) passes() bool { return of.face.Type == wire.TypeTLS }

// expect has visitors wait for a face, for no longer than limit. It reports whether the
// port is kept open for it meanwhile, which one for packets, that cannot wait, is not.
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
		if a.byPlace[f.Place()] == of { // and not the next
			a.remove(of)
		}
	})
	a.byPlace[f.Place()] = of
	if of.passes() {
		a.passing.Add(1)
	}
	return of.port != nil
}

// take returns the port that was kept open for a face; nil: none was.
func (a *awaited) take(f Face) (port Port) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := a.byPlace[f.Place()]; of != nil {
		port, of.port = of.port, nil
	}
	return port
}

// end lets those go on who wait for a face.
func (a *awaited) end(f Face) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := a.byPlace[f.Place()]; of != nil {
		a.remove(of)
	}
}

// remove is end for what is awaited; a.mu is held.
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

// close lets all go on, and nobody wait any more.
func (a *awaited) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, of := range a.byPlace {
		a.remove(of)
	}
}

// wait waits for the first of the places that is expected and asked for, if any is, and
// reports whether it has: it may be served now, or be late.
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

// Expect has visitors of a face that is not served wait for Config.Grace, as it may be
// soon.
func (t *Table) Expect(f Face) { t.expect(f, nil, nil) }

func (t *Table) expect(f Face, last *Backend, port Port) (kept bool) {
	return t.cfg.MayBeBack(f.Target) && t.awaited.expect(f, last, port, t.cfg.Grace)
}

// GiveUp has nobody wait for a target any more.
func (t *Table) GiveUp(target string) {
	for _, slot := range claims.Slots() {
		t.awaited.end(Face{Target: target, Slot: slot})
	}
}

// Await waits for a site of a name that is expected to be served soon in one of the slots,
// and reports whether it has.
func (t *Table) Await(ctx context.Context, name string, slots ...string) bool {
	return t.awaited.wait(ctx, whoever, t.placesOf(name, slots...)...)
}

// AwaitPassing is Await for a name whose TLS is wanted undecrypted.
func (t *Table) AwaitPassing(ctx context.Context, name string) bool {
	return t.awaited.passing.Load() > 0 && t.awaited.wait(ctx, (*awaiting).passes, t.placesOf(name, claims.SlotTLS)...)
}

// AwaitFace is Await for a face that visitors have come by already.
func (t *Table) AwaitFace(ctx context.Context, f Face) bool {
	return t.awaited.wait(ctx, whoever, f.Place())
}

// AwaitPrivate is Await for a private tunnel which let the guest in.
func (t *Table) AwaitPrivate(ctx context.Context, target string, g visitor.Guest) bool {
	invited := func(of *awaiting) bool { return of.last != nil && of.last.invites(g) }
	return t.awaited.wait(ctx, invited, Face{Target: target, Slot: claims.SlotPrivate}.Place())
}

// placesOf are where the sites of a name may be, its own first.
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
