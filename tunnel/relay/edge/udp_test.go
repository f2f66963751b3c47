package edge

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"adit/internal/udpbatch"
	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

func TestRefusedPacketsAreRecordedOnceForEachVisitor(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := policy.Renew(nil, policy.Document{Deny: []string{"0.0.0.0/0", "::/0"}}, func() policy.Geo { return nil })
	defer closed.End()
	told := map[string]int{}
	e := New(Config{
		HTTP: ln, HTTPS: ln, Policy: func(string) *policy.Policy { return closed }, Limits: Limits{UDPFlows: 8, UDPIdle: time.Minute},
		Record: func(_ *Endpoint, _ *Backend, a wire.Access) { told[a.Visitor]++ },
	})
	defer e.Close()
	ep := &Endpoint{Face: Face{Type: wire.TypeUDP}, edge: e}
	ep.set([]*Backend{{Agent: &Agent{}}})
	p := &udpPort{edge: e, ep: ep, flows: map[netip.AddrPort]*flow{}, owners: map[netip.Prefix]int{}, told: map[netip.Prefix]time.Time{}}
	send := func(from string) {
		if f := p.flowOf(udpbatch.Addr{AddrPort: netip.MustParseAddrPort(from)}); f != nil {
			t.Fatalf("%s: got a flow from a policy that lets nobody in", from)
		}
	}
	for port := range 100 {
		send(fmt.Sprintf("192.0.2.1:%d", 1024+port))
	}
	if told["192.0.2.1"] != 1 {
		t.Errorf("got %d events of one visitor's packets, want 1", told["192.0.2.1"])
	}
	for host := range 200 {
		send(fmt.Sprintf("198.51.100.%d:1024", host))
	}
	if len(told) != 8 {
		t.Errorf("got events of %d visitors, want as many as there may be flows: 8", len(told))
	}
	if !p.tells(netip.MustParseAddr("192.0.2.1"), time.Now().Add(time.Minute)) {
		t.Error("a visitor that is refused again after a while is not told of")
	}
}
