package edge

import (
	"adit/internal/wildcard"
	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// domain returns the endpoint that serves a name: its own, or that of the wildcard
// that the name is one of, unless the name is by itself.
func (e *Edge) domain(name, slot string) *Endpoint {
	if ep := e.table.domain(name, slot); ep != nil {
		return ep
	}
	if e.table.wildcards.Load() == 0 {
		return nil
	}
	all := wildcard.Of(name)
	if all == "" || e.cfg.Alone(name) {
		return nil
	}
	return e.table.domain(all, slot)
}

// claimed reports whether a name is some client's, running or not.
func (e *Edge) claimed(name string) bool {
	if e.cfg.Claimed(name) {
		return true
	}
	all := wildcard.Of(name)
	return all != "" && e.cfg.Claimed(all) && !e.cfg.Alone(name)
}

// shownAs is the name by which the certificate of a name is remembered: all names of
// a wildcard have one, and strangers can ask for any number of them.
func (e *Edge) shownAs(name string) string {
	if ep := e.domain(name, store.SlotTLS); ep != nil {
		return ep.Domain
	}
	return name
}

// passThrough returns the endpoint that wants a name's TLS undecrypted, if any.
func (e *Edge) passThrough(name string) *Endpoint {
	if name == "" {
		return nil
	}
	if ep := e.domain(name, store.SlotTLS); ep != nil && ep.Type == wire.TypeTLS {
		return ep
	}
	return nil
}
