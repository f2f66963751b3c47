package edge

import (
	"net/http"
	"net/netip"
)

// guard calls next if the endpoint's policy lets a request in, else it answers
// and returns the rule that refused.
func (h *handler) guard(w http.ResponseWriter, r *http.Request, ep *Endpoint, client netip.Addr, next func()) (refused string) {
	next()
	return ""
}

// guardRaw returns the rule that refuses a connection, or "" and what to call at its end.
func (e *Edge) guardRaw(ep *Endpoint, client netip.Addr) (refused string, release func()) {
	return "", func() {}
}
