package agent

import (
	"cmp"
	"context"
	"sync"
	"time"

	"adit/tunnel/wire"
)

// serve does the session's work until it has ended. If ctx ends, serve closes it.
func (l *live) serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	// While the session is in use; retiring ends this.
	use, unuse := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { l.visitors.Serve(ctx) })
	wg.Go(func() { l.Follow(use, l.handle) })
	wg.Go(func() { l.claimAll(use) })
	wg.Go(func() {
		l.Watch(use, l.changed, func() {
			l.agent.publish()
			l.agent.poke()
		})
	})
	wg.Go(func() { l.Prove(use, l.doubted) })
	wg.Go(func() { l.agent.reports.Send(use, l.Control) })
	select {
	case <-ctx.Done():
		_ = l.Link.Close("the agent ends")
	case <-l.Link.Done():
	case <-l.Retired():
		unuse()
		l.fade(ctx)
	}
	unuse()
	cancel()
	<-l.Link.Done()
	wg.Wait()
	l.Control.Close()
}

// fade closes a retired session once its visitors have gone.
func (l *live) fade(ctx context.Context) {
	l.Control.Close()
	var end <-chan time.Time
	if grace := l.Grace(); grace > 0 {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		end = timer.C
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	given := make(map[*tunnel]bool)
	for quiet := 0; quiet < 2; {
		l.handOver(ctx, given)
		select {
		case <-ctx.Done():
			_ = l.Link.Close("the agent ends")
			return
		case <-l.Link.Done():
			return
		case <-end:
			quiet = 2
		case <-tick.C:
			if quiet++; l.Link.Stats().Streams > 0 {
				quiet = 0
			}
		}
	}
	_ = l.Link.Close("another session has taken over")
}

func (l *live) handle(e wire.Event) {
	a := l.agent
	switch e.Type {
	case wire.EventDrain:
		a.log.Info("relay asks to move on", "reason", e.Reason)
		l.Drain()
		a.moved(l, e.Addresses)
		if len(e.Nodes) > 0 {
			a.told(l, e.Nodes)
		}
		a.poke()
		a.wantSecond()
	case wire.EventNodes:
		var addrs []string
		for _, n := range e.Nodes {
			addrs = append(addrs, n.Address)
		}
		a.moved(l, addrs)
		a.told(l, e.Nodes)
	case wire.EventMoved:
		if kept := a.moved(l, e.Addresses); kept != nil {
			a.log.Info("relay moved", "addresses", kept)
		}
	case wire.EventRevoked:
		if p := pardonAfter(e.RetryAfter); p.pace > 0 {
			a.refuse(l, "the relay refuses the token for now: "+cmp.Or(e.Reason, "no reason given")+"; ask its operator", p)
			return
		}
		a.refuse(l, "the relay revoked the token: "+cmp.Or(e.Reason, "no reason given")+"; ask its operator for a new one", pardon{})
	case wire.EventScope:
		l.look()
	case wire.EventClaimLost:
		a.claimLost(l, e.Key, cmp.Or(e.Reason, "the relay took it away"))
	}
}
