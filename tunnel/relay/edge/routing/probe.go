package routing

import (
	"slices"
	"time"
)

// A tunnel that is out of turn is probed after probeFirst, and then at intervals that double
// up to probeMost.
const (
	probeFirst = time.Second
	probeMost  = 10 * time.Second
)

// TakeOut puts a backend whose origin is down out of turn, if other backends share its
// endpoint, and probes it until the origin is back.
func (t *Table) TakeOut(ep *Endpoint, b *Backend) {
	if len(ep.Backends()) < 2 || t.cfg.Life.Err() != nil || !b.out.CompareAndSwap(false, true) {
		return
	}
	t.cfg.Log.Info("origin down; its tunnel is out of turn", "endpoint", ep.ID(), "client", b.Agent.ClientID, "key", b.name())
	t.attach.Lock()
	defer t.attach.Unlock()
	if !t.ending { // StopAccepting is followed by a wait for everything started with Go
		t.cfg.Go(func() { t.probe(ep, b) })
	}
}

// probe asks b's agent to connect to its origin until that succeeds, or until b no longer
// serves the endpoint.
func (t *Table) probe(ep *Endpoint, b *Backend) {
	for wait := probeFirst; ; wait = min(2*wait, probeMost) {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-b.Agent.Session.Done():
			timer.Stop()
			return
		case <-t.cfg.Life.Done():
			timer.Stop()
			return
		}
		if !slices.Contains(ep.Backends(), b.tunnel()) {
			b.out.Store(false) // it may become the best way to its tunnel again, without a probe
			return
		}
		if b.origin.Reaches(t.cfg.Life) {
			b.out.Store(false)
			t.cfg.Log.Info("origin back; its tunnel takes its turn", "endpoint", ep.ID(), "client", b.Agent.ClientID, "key", b.name())
			return
		}
	}
}
