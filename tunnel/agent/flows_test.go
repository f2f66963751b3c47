package agent

import (
	"net"
	"net/netip"
	"slices"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/wire"
)

// silentUDP is a udp tunnel to a service that hears and says nothing, and its number at
// the relay.
func silentUDP(t *testing.T) (r *fakeRelay, a *Agent, tun Tunnel, number uint32) {
	t.Helper()
	service, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	r = newFakeRelay(t)
	a, _ = configured(t, r, Config{})
	tun = mustCreate(t, a, definition.Tunnel{Type: "udp", LocalPort: service.LocalAddr().(*net.UDPAddr).Port})
	r.mu.Lock()
	defer r.mu.Unlock()
	return r, a, tun, r.numbers[tun.ID]
}

// The owner of a service whose answers are too long for visitors who may be forged
// learns why nothing comes: at the flow, and once from the log and the relay.
func TestAnswersThatAreNotPassedOnAreTold(t *testing.T) {
	const withheld = "an answer was dropped: it is too long for a visitor whose address may be forged; the relay's operator can allow more with udp_amplification"
	r, a, tun, number := silentUDP(t)
	send := func(kind wire.FlowKind) {
		t.Helper()
		if err := r.session().SendDatagram(wire.AppendFlow(nil, wire.Flow{Kind: kind, Endpoint: number, Number: 1})); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the relay's operator is told", func() bool {
		send(wire.FlowWhole)
		send(wire.FlowWithheld)
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.reports, func(e wire.AgentError) bool { return e.Key == tun.ID && e.Message == withheld })
	})
	send(wire.FlowClose)
	eventually(t, "the flow says so", func() bool {
		list := a.Requests(inspect.Filter{Kind: inspect.KindFlow})
		return len(list) == 1 && list[0].State == "failed" && list[0].Error == withheld
	})
}

// TestWhoseAFlowIsShows in the inspector, as of a connection.
func TestWhoseAFlowIsShows(t *testing.T) {
	r, a, _, number := silentUDP(t)
	who := wire.From{Visitor: netip.MustParseAddrPort("203.0.113.9:50122"), Client: "laptop"}
	eventually(t, "the flow shows whose it is", func() bool {
		for _, d := range [][]byte{
			wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowFrom, Endpoint: number, Number: 1, Payload: []byte("nobody")}), // which is left out
			who.Datagram(number, 1),
			wire.AppendFlow(nil, wire.Flow{Kind: wire.FlowWhole, Endpoint: number, Number: 1, Payload: []byte("hello")}),
		} {
			if err := r.session().SendDatagram(d); err != nil {
				t.Fatal(err)
			}
		}
		list := a.Requests(inspect.Filter{Kind: inspect.KindFlow})
		return len(list) == 1 && list[0].Visitor == "203.0.113.9:50122" && list[0].Client == "laptop" && list[0].BytesIn > 0
	})
}
