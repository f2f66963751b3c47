package udp

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"adit/internal/udpbatch"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/policy"
	"adit/tunnel/wire"
)

// letting are ports that let everybody in.
func letting(record func(*routing.Endpoint, *routing.Backend, wire.Access)) *Ports {
	return New(Config{
		Flows: 10, FlowsPerAddress: 10, Idle: time.Minute, Amplification: 3, Record: record,
		Enter: func(*routing.Endpoint, netip.Addr) (string, bool, func()) { return "", true, func() {} },
		Keeps: func(*routing.Endpoint, netip.Addr) bool { return true },
	})
}

func TestRefusedPacketsAreRecordedOnceForEachVisitor(t *testing.T) {
	closed := policy.Renew(nil, "", policy.Document{Deny: []string{"0.0.0.0/0", "::/0"}}, func() policy.Geo { return nil })
	defer closed.End()
	told := map[string]int{}
	ports := New(Config{
		Flows: 8, FlowsPerAddress: 64, Idle: time.Minute,
		Enter: func(_ *routing.Endpoint, a netip.Addr) (string, bool, func()) {
			d, release := closed.Enter(policy.Request{Addr: a}, time.Now())
			return d.Rule, d.Allowed, release
		},
		Record: func(_ *routing.Endpoint, _ *routing.Backend, a wire.Access) { told[a.Visitor]++ },
	})
	ep, err := routing.New(routing.Config{}).Attach(routing.Face{Type: wire.TypeUDP}, &routing.Backend{Agent: &routing.Agent{}})
	if err != nil {
		t.Fatal(err)
	}
	p := &Port{all: ports, ep: ep, flows: map[netip.AddrPort]*flow{}, owners: map[netip.Prefix]int{}, told: map[netip.Prefix]time.Time{}}
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

// TestFlowsOfATunnelThatWasTakenAwayGoToAnother moves flows to another tunnel of the same
// port, because their agent, which is still connected, drops their packets. Flows of a tunnel
// that has only changed stay where they are.
func TestFlowsOfATunnelThatWasTakenAwayGoToAnother(t *testing.T) {
	told := make(chan string, 10)
	ports := letting(func(_ *routing.Endpoint, b *routing.Backend, _ wire.Access) { told <- b.Agent.Instance })
	var serving sync.WaitGroup
	var at string
	table := routing.New(routing.Config{Open: func(ep *routing.Endpoint) (routing.Port, error) {
		port, err := ports.Open("127.0.0.1:0", ep)
		if err != nil {
			return nil, err
		}
		at = port.conn.LocalAddr().String()
		serving.Go(port.Serve)
		return port, nil
	}})
	face := routing.Face{Target: "udp:1", Slot: "port", Type: wire.TypeUDP, Mode: wire.ModeBalanced}
	attach := func(a *routing.Agent) *routing.Backend {
		t.Helper()
		b := &routing.Backend{Key: "k", Agent: a}
		if _, err := table.Attach(face, b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	came := make(chan struct{}, 10)
	first, second := &gatherer{came: came}, &gatherer{came: came}
	one := &routing.Agent{ClientID: "c", Instance: "one", Session: first}
	before := attach(one)
	visitor, err := net.Dial("udp", at)
	if err != nil {
		t.Fatal(err)
	}
	defer visitor.Close()
	send := func(text string) {
		t.Helper()
		if _, err := visitor.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-came:
		case <-time.After(20 * time.Second):
			t.Fatalf("%q went nowhere", text)
		}
	}
	send("1")
	other := attach(&routing.Agent{ClientID: "c", Instance: "two", Session: second})
	defer serving.Wait()
	defer table.Detach(face, other)
	after := attach(one)
	table.Detach(face, before)
	send("2")
	if len(first.sent) != 2 || len(told) != 0 {
		t.Errorf("after a change: the first agent got %q, the second %q", first.sent, second.sent)
	}
	table.Detach(face, after)
	send("3")
	if len(first.sent) != 2 || len(second.sent) != 1 || len(told) != 1 || <-told != "one" {
		t.Errorf("after it was taken away: the first agent got %q, the second %q", first.sent, second.sent)
	}
}
