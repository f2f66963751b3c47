package relay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/wire"
)

// Run serves until ctx ends. Then it stops accepting, tells agents to move on,
// lets streams finish, and closes everything.
func (r *Relay) Run(ctx context.Context) error {
	// life outlasts ctx by the time of the drain.
	life, end := context.WithCancel(context.Background())
	defer end()
	// visiting ends when visitors are to be turned away; the other nodes are
	// there for a little more.
	visiting, turnAway := context.WithCancel(context.Background())
	defer turnAway()
	drained, over := context.WithCancel(context.Background()) // all visitors have had their time
	defer over()
	context.AfterFunc(visiting, func() { time.AfterFunc(r.opts.Drain, over) })
	for _, c := range r.store.Claims.List() { // their agents may have been here until now
		for _, h := range c.Holders {
			r.edge.Expect(routing.Face{Target: c.Target, Slot: h.Slot, Type: h.Type})
		}
	}
	group, failed := errgroup.WithContext(ctx)
	group.Go(func() error { return r.acceptSessions(failed, life) })
	group.Go(func() error {
		if r.members != nil {
			r.members.Meet(visiting)
		}
		err := r.edge.Run(visiting, r.opts.Drain)
		if r.mesh != nil { // visitors of other nodes, too
			r.mesh.Idle(drained)
		}
		end() // visitors have ended: sessions may
		return err
	})
	if r.members != nil {
		group.Go(func() error { r.runNodes(life); return nil })
	}
	group.Go(func() error { return r.serveConsole(failed) })
	group.Go(func() error { return r.handler.Run(life) })
	group.Go(func() error { return r.access.Run(life) })
	beside := []func(context.Context){
		r.sweep, r.watchGeo, r.policies.WatchHours, r.policies.WatchLeft, r.watchExpiry, r.sinks.Run, r.alerts.Run, r.ledger.Run, r.keepBooks,
	}
	if r.file != nil {
		beside = append(beside, func(ctx context.Context) { r.file.Run(ctx, r.log, r.cfg.Domain, r.acme != nil) })
	}
	if r.acme != nil {
		beside = append(beside, r.acme.Run)
		if host := r.cfg.SignInName(); host != "" {
			r.acme.Want(host)
		}
	}
	for _, run := range beside {
		group.Go(func() error { run(life); return nil })
	}
	group.Go(func() error {
		<-failed.Done()
		r.drain()
		if r.members != nil {
			r.moveOff(life)
		}
		turnAway()
		r.log.Info("relay ends; visitors may finish", "visitors", r.visitors(), "within", r.opts.Drain)
		return nil
	})
	err := group.Wait()
	r.tasks.end()
	return errors.Join(err, r.Close())
}

// keepBooks counts what clients move, holds them to their quotas, and stores where
// their agents were seen, until ctx ends.
func (r *Relay) keepBooks(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(r.opts.usageFlush, usageFlush))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.accounts.Settle(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.Background(), storeWait)
			r.accounts.Settle(last)
			r.notes.Flush(last)
			cancel()
			return
		}
		r.notes.Flush(ctx)
	}
}

// acceptSessions takes sessions until life ends; from the end of ctx on it
// turns new ones away.
func (r *Relay) acceptSessions(ctx, life context.Context) error {
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		s, err := r.listener.Accept(life)
		switch {
		case life.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("accept agents: %w", err)
		case ctx.Err() != nil:
			serving.Go(func() { s.Close("the relay is shutting down") })
		default:
			serving.Go(func() { r.serve(life, s) })
		}
	}
}

// tasks is short work that events start, until it ends.
type tasks struct {
	mu    sync.Mutex
	ended bool
	sync.WaitGroup
}

// end waits for what runs; nothing begins any more.
func (t *tasks) end() {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	t.Wait()
}

// task runs short work that an event starts, unless the relay has ended.
func (r *Relay) task(f func()) {
	r.tasks.mu.Lock()
	defer r.tasks.mu.Unlock()
	if !r.tasks.ended {
		r.tasks.Go(f)
	}
}

// drain tells every agent to move on.
func (r *Relay) drain() {
	for _, s := range r.roster.Close() {
		e := wire.Event{Type: wire.EventDrain, Reason: "the relay is shutting down"}
		if r.members != nil {
			e.Nodes = r.members.ForAgent()
			e.Addresses = addresses(e.Nodes)
		}
		s.tell(e)
	}
}

// shuttingDown is the answer of a relay that drains to who wants more of it.
func shuttingDown() *wire.Problem {
	return &wire.Problem{Code: wire.CodeUnavailable, Message: "the relay is shutting down"}
}
