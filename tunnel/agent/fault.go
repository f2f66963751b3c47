package agent

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"adit/tunnel/wire"
)

const (
	// firstLook and lastLook are how long a local service that was not reached is left
	// alone before it is tried again: twice as long each time.
	firstLook = 2 * time.Second
	lastLook  = time.Minute
	// looksAtOnce bounds the services that are tried at the same time.
	looksAtOnce = 8
)

// fault is why a local service was not reached last; nil if it was, or nobody tried.
type fault struct{ why atomic.Pointer[string] }

// note notes how a try to reach the service ended, and reports whether that is news.
func (f *fault) note(err error) bool {
	was := f.why.Load()
	if err == nil {
		return was != nil && f.why.CompareAndSwap(was, nil)
	}
	text := err.Error()
	return (was == nil || *was != text) && f.why.CompareAndSwap(was, &text)
}

func (f *fault) text() string {
	if why := f.why.Load(); why != nil {
		return *why
	}
	return ""
}

// reached notes whether a route's local service was.
func (a *Agent) reached(r *route, err error) {
	if !r.fault.note(err) {
		return
	}
	a.active()
	if err == nil {
		return
	}
	select {
	case a.faults <- struct{}{}:
	default:
	}
}

// faultText is why the service of a tunnel, or of one of its paths, was not reached.
func (r *route) faultText() string {
	for _, of := range append([]*route{r}, r.forks...) {
		if text := of.fault.text(); text != "" {
			if of.path != "" {
				text = of.path + ": " + text
			}
			return text
		}
	}
	return ""
}

// keepLooking tries the services that were not reached until they are, so that the page
// need not wait for a visitor to say that all is well. It sleeps while there are none.
func (a *Agent) keepLooking(ctx context.Context) {
	next := time.NewTimer(time.Hour)
	defer next.Stop()
	next.Stop()
	pause := firstLook
	for {
		select {
		case <-ctx.Done():
			return
		case <-a.faults:
			pause = firstLook
		case <-next.C:
			if !a.lookOnce(ctx) {
				continue
			}
			pause = min(2*pause, lastLook)
		}
		next.Reset(pause)
	}
}

// lookOnce tries each of them once, and reports whether there are any left.
func (a *Agent) lookOnce(ctx context.Context) (left bool) {
	var tries errgroup.Group
	tries.SetLimit(looksAtOnce)
	var down atomic.Bool
	for _, r := range a.faulty() {
		tries.Go(func() error {
			conn, err := a.dialOrigin(ctx, r, wire.StreamHTTP, nil)
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

// faulty are the routes of running tunnels whose services were not reached and can be
// tried: one of datagrams answers to its own visitors alone.
func (a *Agent) faulty() (list []*route) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, t := range a.tunnels {
		if t.stopped || t.spec.Type == wire.TypeUDP {
			continue
		}
		own := t.route.Load()
		for _, r := range append([]*route{own}, own.forks...) {
			if r.fault.text() != "" {
				list = append(list, r)
			}
		}
	}
	return list
}
