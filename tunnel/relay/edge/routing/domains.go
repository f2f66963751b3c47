package routing

import (
	"adit/internal/wildcard"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

// Domain returns the endpoint that serves a name: its own or, unless Config.Alone says
// otherwise, that of the wildcard that covers the name.
func (t *Table) Domain(name, slot string) *Endpoint {
	if ep := t.own(name, slot); ep != nil {
		return ep
	}
	if t.wildcards.Load() == 0 {
		return nil
	}
	all := wildcard.Of(name)
	if all == "" || t.cfg.Alone(name) {
		return nil
	}
	return t.own(all, slot)
}

// ShownAs returns the name under which to remember a name's certificate. All names of a
// wildcard share one, since strangers can ask for any number of them.
func (t *Table) ShownAs(name string) string {
	if ep := t.Domain(name, claims.SlotTLS); ep != nil {
		return ep.Domain
	}
	return name
}

// PassThrough returns the endpoint that takes a name's TLS undecrypted, if there is one.
func (t *Table) PassThrough(name string) *Endpoint {
	if name == "" {
		return nil
	}
	if ep := t.Domain(name, claims.SlotTLS); ep != nil && ep.Type == wire.TypeTLS {
		return ep
	}
	return nil
}
