package certs

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

const (
	lookFor = 5 * time.Second // for finding out where a name leads
	// lookPart divides a pause: one such part passes before the first check whether the
	// name leads elsewhere. Somebody who moves a name back and forth must not use up the
	// authority's limits.
	lookPart = 8
)

// lookAfter returns how much of a pause passes before checking where the name leads,
// after a number of early attempts that failed as well: an eighth, doubled with each such
// attempt from the second on, and finally all of it. If a name has many addresses and the
// DNS returns a few at a time, it seems to lead elsewhere at every check.
func lookAfter(pause time.Duration, early int) time.Duration {
	return pause / lookPart << min(max(0, early-1), 3)
}

// place is where a name leads. It is empty for a name that leads nowhere, or if that
// cannot be found out.
type place []netip.Addr

// settle records where the name of a failed attempt leads. With DNS-01, that means
// nothing.
func (a *ACME) settle(subject string, f *failure) {
	if a.configOf(subject) == a.dns {
		return
	}
	from := a.place(subject)
	a.mu.Lock()
	defer a.mu.Unlock()
	f.from = &from
}

// place looks up where a name leads.
func (a *ACME) place(name string) place {
	ctx, cancel := context.WithTimeout(a.life, lookFor)
	defer cancel()
	addrs, err := a.cfg.Lookup(ctx, "ip", name+".")
	if err != nil {
		return nil
	}
	for i := range addrs {
		addrs[i] = addrs[i].Unmap()
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	return slices.Compact(addrs)
}

// elsewhere reports whether a name leads elsewhere than before: it may have been
// repaired.
func (p place) elsewhere(before *place) bool {
	return len(p) > 0 && !slices.Equal(p, *before)
}
