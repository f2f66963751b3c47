package routing

import (
	"context"
	"sync"
	"time"

	"adit/internal/wildcard"
	"adit/tunnel/relay/store/claims"
)

// Visitors that may wait at once: each holds its connection and the head of its request.
const (
	mostAwaiting   = 1024
	mostOfOneAwait = 256
)

// awaited are targets whose last tunnel was lost with its session, each for a while: an
// agent that is restarted is back within it, and visitors wait for it. Its zero value is
// ready for use.
type awaited struct {
	mu       sync.Mutex
	closed   bool
	byTarget map[string]*awaiting
	visitors int
}

type awaiting struct {
	over     chan struct{}
	timer    *time.Timer
	visitors int
}

// expect has visitors wait for a target, for no longer than limit.
func (a *awaited) expect(target string, limit time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || limit <= 0 || a.byTarget[target] != nil {
		return
	}
	if a.byTarget == nil {
		a.byTarget = make(map[string]*awaiting)
	}
	a.byTarget[target] = &awaiting{over: make(chan struct{}), timer: time.AfterFunc(limit, func() { a.end(target) })}
}

// end lets those go on who wait for a target.
func (a *awaited) end(target string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if of := a.byTarget[target]; of != nil {
		of.timer.Stop()
		close(of.over)
		delete(a.byTarget, target)
	}
}

// close lets all go on, and nobody wait any more.
func (a *awaited) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for target, of := range a.byTarget {
		of.timer.Stop()
		close(of.over)
		delete(a.byTarget, target)
	}
}

// wait waits for one of the targets that is expected, if any is, and reports whether it
// has: the target may be served now, or be late.
func (a *awaited) wait(ctx context.Context, targets ...string) bool {
	of := a.enter(targets)
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

func (a *awaited) enter(targets []string) *awaiting {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, target := range targets {
		if of := a.byTarget[target]; of != nil && of.visitors < mostOfOneAwait && a.visitors < mostAwaiting {
			of.visitors++
			a.visitors++
			return of
		}
	}
	return nil
}

// Expect has visitors of a target that is not served wait for Config.Grace, as it may be
// soon.
func (t *Table) Expect(target string) {
	if t.cfg.MayBeBack(target) {
		t.awaited.expect(target, t.cfg.Grace)
	}
}

// GiveUp has nobody wait for a target any more.
func (t *Table) GiveUp(target string) { t.awaited.end(target) }

// Await waits for a name that is expected to be served soon, and reports whether it has.
func (t *Table) Await(ctx context.Context, name string) bool {
	targets := []string{claims.TargetDomain(name)}
	if all := wildcard.Of(name); all != "" && !t.cfg.Alone(name) {
		targets = append(targets, claims.TargetDomain(all))
	}
	return t.awaited.wait(ctx, targets...)
}
