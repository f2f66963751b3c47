package certs

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

const (
	lookFor = 5 * time.Second // where a name leads
	// lookPart of a pause passes before it is first looked whether the name leads
	// elsewhere: whoever moves one to and fro must not use up the authority's limits.
	lookPart = 8
)

// lookAfter is how much of a pause passes before it is looked where the name leads,
// after so many tries before their time that failed, too: an eighth, twice so much
// from the third on, and in the end all of it. A name with many addresses of which
// the DNS tells a few at a time leads elsewhere whenever one looks.
func lookAfter(pause time.Duration, early int) time.Duration {
	return pause / lookPart << min(max(0, early-1), 3)
}

// place is where a name leads. A name that leads nowhere, or of which that cannot
// be found out, has no addresses.
type place []netip.Addr

// settle notes where the name of a failed try leads. With DNS-01 that says nothing.
func (a *ACME) settle(subject string, f *failure) {
	if a.configOf(subject) == a.dns {
		return
	}
	from := a.place(subject)
	a.mu.Lock()
	defer a.mu.Unlock()
	f.from = &from
}

// place looks where a name leads.
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
