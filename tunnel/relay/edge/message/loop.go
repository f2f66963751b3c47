package message

import (
	"net/http"
	"strings"
)

// loopHeader lists who has passed a request on (RFC 8586), so that loops can be detected: a
// tunnel's local service may be the relay itself, or lead there. All nodes of a relay use the
// same name in it.
const loopHeader = "Cdn-Loop"

// maxPasses is how often a request may come through one relay. More than once is legitimate:
// services behind tunnels may call each other and pass the header on.
const maxPasses = 4

// Loops reports whether a request has passed through the relay of that name too often. A
// visitor who forges the header only affects its own request.
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

// passedBy returns the header's value for the origin: the value that the request came with,
// which nobody may drop, followed by this relay.
func passedBy(r *http.Request, name string) string {
	if before := r.Header[loopHeader]; len(before) > 0 {
		return strings.Join(before, ", ") + ", " + name
	}
	return name
}
