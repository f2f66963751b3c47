package message

import (
	"net/http"
	"strings"
)

// loopHeader tells by whom a request has been passed on (RFC 8586), so that one
// that comes back again and again is known: a tunnel's local service may be the
// relay itself, or lead there. All nodes of a relay have one name in it.
const loopHeader = "Cdn-Loop"

// maxPasses is how often a request may come through one relay. Services behind
// tunnels may ask for one another, and pass on what they were asked with.
const maxPasses = 4

// Loops reports whether a request has come through the relay of a name too often.
// What a visitor writes there by itself is against nobody else.
func Loops(r *http.Request, name string) bool {
	passes := 0
	for _, values := range r.Header[loopHeader] {
		for by := range strings.SplitSeq(values, ",") {
			by, _, _ = strings.Cut(by, ";")
			if strings.EqualFold(strings.Trim(by, " \t"), name) {
				passes++
			}
		}
	}
	return passes >= maxPasses
}

// passedBy is what the origin is told: what the request came with, which nobody
// may leave out, and this relay.
func passedBy(r *http.Request, name string) string {
	if before := r.Header[loopHeader]; len(before) > 0 {
		return strings.Join(before, ", ") + ", " + name
	}
	return name
}
