// Package netwatch notices that this machine's place in the network may have changed: other
// addresses, another route, or a wake-up from sleep. It reports that something changed, not what to
// do about it. It sleeps until the system reports a change, and polls only if the system reports
// none.
package netwatch

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Change is what was noticed.
type Change string

// Changes.
const (
	Addresses Change = "addresses" // an interface came, went, or has other addresses
	Route     Change = "route"     // traffic to the target leaves from another address, or its route was replaced
	Wake      Change = "wake"      // the clock jumped, as after sleep
)

// Watcher watches the network while Run is running.
type Watcher struct {
	// Target is the destination of the traffic; the source address that the system chooses for it
	// is watched. If invalid, only addresses are watched.
	Target netip.AddrPort
	// Interval is how often the state is compared if the system does not report all changes. If
	// zero, 5 seconds.
	Interval time.Duration
	// Changed is called once for each change, from Run's goroutine.
	Changed func(Change)

	// For tests.
	look func() state
	wall func() time.Time
}

// settle is how long the system's news are gathered: an address that changes
// makes several of them. They are gathered for patience at most.
const (
	settle   = 150 * time.Millisecond
	patience = 2 * time.Second
)

// jump is how far the clock may be off between two looks.
const jump = 10 * time.Second

// state is what changes are told by.
type state struct {
	addresses string
	source    netip.Addr
}

// system is what the system tells. The zero value tells nothing.
type system struct {
	news  <-chan piece // closed when it tells no more
	whole bool         // it tells of wake-ups as well
}

// Run watches until ctx ends, and then returns nil.
func (w *Watcher) Run(ctx context.Context) error {
	sys, stop := subscribe()
	defer stop()
	return w.run(ctx, sys)
}

func (w *Watcher) run(ctx context.Context, sys system) error {
	interval := w.Interval
	if interval == 0 {
		interval = 5 * time.Second
	}
	look := w.look
	if look == nil {
		look = func() state { return state{addresses(), source(w.Target)} }
	}
	wall := w.wall
	if wall == nil {
		wall = func() time.Time { return time.Now().Round(0) }
	}
	before, last, then := look(), wall(), time.Now()
	timer := time.NewTimer(interval) // the first look is in any case: news may have come before
	defer timer.Stop()
	looks := true       // the timer is for a look that no news asked for
	var first time.Time // of the news that are gathered; zero: there are none
	replaced := false   // something was taken away, though it may be there again
	woken := false      // the system says that the machine slept
	for {
		select {
		case <-ctx.Done():
			return nil
		case n, ok := <-sys.news:
			if !ok {
				sys = system{}
				timer.Reset(interval)
				looks = true
				continue
			}
			replaced = replaced || n == removed
			woken = woken || n == woke
			if first.IsZero() {
				first = time.Now()
			}
			timer.Reset(min(settle, max(0, patience-time.Since(first))))
			continue
		case <-timer.C:
		}
		now := wall()
		// Between two looks without news no more than the interval passes. With
		// news alone any time may, but the clock goes on as the system's timers do.
		slept := woken || now.Before(last.Add(-jump))
		if looks {
			slept = slept || now.Sub(last) > interval+jump
		}
		slept = slept || (now.Sub(last)-time.Since(then)).Abs() > jump
		last, then = now, time.Now()
		after := look()
		switch {
		case slept:
			w.Changed(Wake)
		case after.source != before.source:
			w.Changed(Route)
		case after.addresses != before.addresses:
			w.Changed(Addresses)
		case replaced:
			w.Changed(Route)
		}
		before, replaced, woken, first = after, false, false, time.Time{}
		if looks = !sys.whole; looks {
			timer.Reset(interval)
		}
	}
}

// piece is one of the system's news.
type piece int

const (
	changed piece = iota
	removed       // an address or a default route
	woke          // the machine has slept
)

// addresses lists the addresses of all interfaces that are up, but for
// loopback and link-local ones, which containers make and drop all the time.
func addresses() string {
	interfaces, err := net.Interfaces()
	if err != nil {
		return ""
	}
	var all []string
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 || i.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			prefix, err := netip.ParsePrefix(a.String())
			if err == nil && prefix.Addr().IsGlobalUnicast() {
				all = append(all, i.Name+" "+prefix.String())
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// source is the address that traffic to target leaves from; nothing is sent.
func source(target netip.AddrPort) netip.Addr {
	if !target.IsValid() {
		return netip.Addr{}
	}
	conn, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(target))
	if err != nil {
		return netip.Addr{}
	}
	defer conn.Close()
	local, _ := conn.LocalAddr().(*net.UDPAddr)
	if local == nil {
		return netip.Addr{}
	}
	return local.AddrPort().Addr().Unmap()
}
