package relay

import (
	"fmt"
	"net"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// Packets over a policy's bandwidth are dropped, and each is counted once: as
// passed on or as dropped.
func TestBandwidthDropsPacketsOfUDPVisitors(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "udp"), "i1")
	g := a.mustClaim("k", wire.Claim{Type: wire.TypeUDP}, "echo")
	c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", g.RemotePort))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const size, some = 1000, 10
	in := func() int64 { return r.edge.Endpoints()[0].Counters().BytesIn }
	dropped := func() uint64 { return r.edge.Figures().OverBandwidth }
	// send lets a few packets go at a time, so that none is lost before the relay.
	send := func(packets int) {
		t.Helper()
		for range packets / some {
			before := in()/size + int64(dropped())
			for range some {
				if _, err := c.Write(make([]byte, size)); err != nil {
					t.Fatal(err)
				}
			}
			// Answers may be dropped, too: then there are more.
			eventually(t, "the packets are counted", func() bool { return in()/size+int64(dropped()) >= before+some })
		}
	}
	send(some)
	if n := dropped(); n != 0 {
		t.Errorf("%d packets were dropped with no bandwidth set", n)
	}
	site := &site{testRelay: r}
	target := fmt.Sprintf("udp.%d", g.RemotePort)
	const rate = 2048
	start := time.Now()
	site.setPolicy(t, target, fmt.Sprintf(`{"bandwidth":%d}`, rate))
	eventually(t, "the bandwidth reaches the endpoint", func() bool { return r.edge.Endpoints()[0].Meter.Bounded() })
	from := in()
	send(200)
	const burst = 4<<10 + size // what may come at once
	if most := burst + int64(rate*time.Since(start).Seconds()); in()-from > most {
		t.Errorf("%d bytes came through, want at most %d", in()-from, most)
	}
	if dropped() == 0 {
		t.Error("nothing was dropped")
	}
	if err := r.operator().DeletePolicy(t.Context(), target, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bandwidth is gone", func() bool { return !r.edge.Endpoints()[0].Meter.Bounded() })
	before := in()
	send(some)
	eventually(t, "all of them come through", func() bool { return in()-before >= some*size }) // one of before may come late
	least := dropped()                                                                         // an answer that was under way may be dropped yet
	status, page, _ := site.ask(t, "GET", "/metrics", "", map[string]string{"Authorization": "Bearer " + r.AdminToken()})
	if got := figure(page, `adit_relay_udp_packets_dropped_total{reason="bandwidth"}`); status != 200 || got < float64(least) || got > float64(dropped()) {
		t.Errorf("the figures tell of %v dropped packets, want %d (status %d)", got, least, status)
	}
}
