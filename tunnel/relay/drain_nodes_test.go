package relay

import (
	"net"
	"strconv"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestDrainOfANodeIsOneForAllVisitors checks that the time to drain is shared by a node's
// own visitors and those of other nodes: a service manager kills a process that takes
// longer.
func TestDrainOfANodeIsOneForAllVisitors(t *testing.T) {
	t.Parallel() // most of it is waiting
	const drain = 6 * time.Second
	c := startNodes(t, 1)
	leaving := startRelayWith(t, Options{Config: c.config(1), Drain: drain})
	c.all = append(c.all, leaving)
	c.awaitWhole(c.all...)
	token, claim, origin := c.clientEverywhere("shop"), wire.Claim{Type: wire.TypeTCP}, startTCPEcho(t)
	grant := connect(t, leaving.at(token), "i1").mustClaim("k", claim, origin)
	claim.RemotePort = grant.RemotePort
	visit := func(r *testRelay) {
		t.Helper()
		host, _, _ := net.SplitHostPort(r.Addrs().HTTP)
		address := net.JoinHostPort(host, strconv.Itoa(grant.RemotePort))
		eventually(t, "the port is open", func() bool { return dials(address) })
		echoed(t, address) // and stays
	}
	visit(leaving)
	visit(c.all[0])
	connect(t, c.all[0].at(token), "i1").mustClaim("k", claim, origin) // there is nothing to wait for
	ended := make(chan error, 1)
	go func() { ended <- leaving.stop() }()
	eventually(t, "new visitors are turned away", func() bool { return !dials(leaving.Addrs().HTTP) })
	begun := time.Now()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > drain*7/4 {
		t.Errorf("the node took %v to end, want %v", took, drain)
	}
}

func dials(address string) bool {
	c, err := net.Dial("tcp", address)
	if err == nil {
		c.Close()
	}
	return err == nil
}
