package forward

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/tunnel/wire"
)

const (
	// firstLook and lastLook are the shortest and longest pause before a local service that could
	// not be reached is tried again; the pause doubles each time.
	firstLook = 2 * time.Second
	lastLook  = time.Minute
	// looksAtOnce limits how many services are tried at the same time.
	looksAtOnce = 8
)

// reached records whether a route's local service was reached.
func (f *Forwarder) reached(r *route, err error) {
	if !r.fault.note(err) {
		return
	}
	f.active()
	if err != nil {
		f.LookAgain()
	}
}

// LookAgain makes KeepLooking start over. It is called, for example, when a tunnel runs again whose
// service could not be reached and has not been tried since the tunnel was stopped.
func (f *Forwarder) LookAgain() {
	select {
	case f.faults <- struct{}{}:
	default:
	}
}

// KeepLooking retries services that could not be reached until they can be, so that the page shows
// the recovery without waiting for a visitor. It runs until ctx ends, and sleeps while there is
// nothing to try. running returns the tunnels to check.
func (f *Forwarder) KeepLooking(ctx context.Context, running func() []*Tunnel) {
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	next.Stop()
	pause := firstLook
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.faults:
			pause = firstLook
		case <-next.C:
			if !f.lookOnce(ctx, running()) {
				continue
			}
			pause = min(2*pause, lastLook)
		}
		next.Reset(pause)
	}
}

// lookOnce tries each of them once, and reports whether there are any left.
func (f *Forwarder) lookOnce(ctx context.Context, running []*Tunnel) (left bool) {
	var tries errgroup.Group
	tries.SetLimit(looksAtOnce)
	var down atomic.Bool
	for _, r := range faulty(running) {
		tries.Go(func() error {
			conn, err := f.dial(ctx, r, wire.StreamHTTP, nil)
			if err != nil {
				down.Store(true)
				return nil
			}
			conn.Close()
			return nil
		})
	}
	_ = tries.Wait()
	return down.Load()
}

// faulty returns the routes of tunnels whose services could not be reached and can be tried: a
// datagram service only answers its own visitors.
func faulty(running []*Tunnel) (list []*route) {
	for _, t := range running {
		own := t.route.Load()
		if own.spec.Type == wire.TypeUDP {
			continue
		}
		for _, r := range append([]*route{own}, own.forks...) {
			if r.fault.text() != "" {
				list = append(list, r)
			}
		}
	}
	return list
}
