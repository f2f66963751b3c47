package relay

import (
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// TestALongClaimCutsNoNodesOff has a client say as much in a claim as a request may have:
// it must not be more than nodes can tell each other, who would hear nothing of each
// other's agents any more.
func TestALongClaimCutsNoNodesOff(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startNodes(t, 2)
	v := &http.Client{Transport: &http.Transport{}}
	busy := c.clientEverywhere("busy")
	connect(t, c.all[0].at(busy), "i1").mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "busy", PolicyOf: strings.Repeat("x", maxControlBody-150)}, startOrigin(t, text("busy")))
	everywhere(t, c.all, v, "busy.relay.test", "busy")
	shop := c.clientEverywhere("shop")
	connect(t, c.all[0].at(shop), "i1").mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, text("shop")))
	everywhere(t, c.all, v, "shop.relay.test", "shop")
}
