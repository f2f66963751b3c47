package forward

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/origin"
	"adit/tunnel/wire"
)

// flooded is a session with as many flows as it may have, to a service that says
// nothing.
func flooded(b testing.TB) (fs *flows, start func(number uint32) *flow) {
	service, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { service.Close() })
	by := quiet(&origin.Dialer{Timeout: time.Second, LookAgain: time.Hour})
	tun := NewTunnel("tun_1", definition.Tunnel{Type: wire.TypeUDP, LocalIP: "127.0.0.1", LocalPort: service.LocalAddr().(*net.UDPAddr).Port})
	fs = &flows{Forwarder: by, session: &deafSession{}, numbers: &numbers{tunnels: map[uint32]*Tunnel{3: tun}}, open: make(map[flowKey]*flow)}
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(func() {
		cancel()
		fs.abort()
		fs.wg.Wait()
	})
	return fs, func(number uint32) *flow { return fs.start(ctx, flowKey{3, number}, wire.From{}) }
}

// BenchmarkNewFlow is what a flood of visitors costs, each of whom is a new one.
func BenchmarkNewFlow(b *testing.B) {
	_, start := flooded(b)
	number := uint32(0)
	for range maxFlows {
		number++
		start(number)
	}
	b.ResetTimer()
	for range b.N {
		number++
		start(number)
	}
}

// silentFlow is one without a socket.
func silentFlow(number uint32, used int64) *flow {
	f := &flow{key: flowKey{3, number}}
	f.used.Store(used)
	return f
}

// TestAFloodOfFlowsEvictsItself: visitors who are served go on meanwhile, and it
// costs little to find out who is not.
func TestAFloodOfFlowsEvictsItself(t *testing.T) {
	const flood = 200_000
	calm := &flows{open: make(map[flowKey]*flow)}
	began := time.Now()
	for number := range uint32(flood) {
		f := silentFlow(number, 0)
		calm.put(f)
		calm.remove(f)
	}
	usual := time.Since(began)

	fs := &flows{open: make(map[flowKey]*flow)}
	var busy []*flow
	now := int64(0)
	for number := range uint32(100) {
		busy = append(busy, silentFlow(number, now))
		fs.put(busy[number])
	}
	began = time.Now()
	for number := range uint32(flood) {
		if now++; number%1000 == 0 {
			for _, f := range busy {
				f.used.Store(now)
			}
		}
		fs.put(silentFlow(1000+number, now))
	}
	if took := time.Since(began); took > 30*usual { // to look through all takes some hundred times as long
		t.Errorf("a flood of %d took %v, as many flows that come and go %v", flood, took, usual)
	}
	for _, f := range busy {
		if f.ended.Load() || fs.get(f.key) != f {
			t.Errorf("the flow %d was evicted", f.key.number)
		}
	}
	if len(fs.open) != maxFlows || fs.order.Len() != maxFlows {
		t.Errorf("%d flows are open, and %d in turn", len(fs.open), fs.order.Len())
	}
	// One comes again whose flow has ended.
	again := silentFlow(1000+flood-1, now)
	fs.put(again)
	if fs.get(again.key) != again || len(fs.open) != maxFlows || fs.order.Len() != maxFlows {
		t.Errorf("after one came again %d flows are open, and %d in turn", len(fs.open), fs.order.Len())
	}
	for _, f := range fs.open {
		fs.remove(f)
	}
	if fs.order.Len() != 0 {
		t.Errorf("%d flows are in turn after all are over", fs.order.Len())
	}
}

// TestAFloodDoesNotAskTheDNSForThoseWhoAreGone: a relay may bring any number of flows to a
// service whose name is not answered for.
func TestAFloodDoesNotAskTheDNSForThoseWhoAreGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asking atomic.Int32
		by := quiet(&origin.Dialer{Timeout: time.Hour, Lookup: func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
			asking.Add(1)
			defer asking.Add(-1)
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		var troubles atomic.Int32
		by.complain = func(string, string, string) { troubles.Add(1) }
		tun := NewTunnel("tun_1", definition.Tunnel{Type: wire.TypeUDP, LocalIP: "nas.test", LocalPort: 53})
		fs := &flows{Forwarder: by, session: &deafSession{}, numbers: &numbers{tunnels: map[uint32]*Tunnel{3: tun}}, open: make(map[flowKey]*flow)}
		for number := range uint32(3 * maxFlows) {
			fs.start(t.Context(), flowKey{3, number}, wire.From{})
		}
		synctest.Wait()
		if n := asking.Load(); n != maxFlows {
			t.Errorf("%d flows wait for the DNS, of at most %d", n, maxFlows)
		}
		fs.abort()
		fs.wg.Wait()
		if n := troubles.Load(); n > 0 {
			t.Errorf("%d flows that were given up are told of as trouble", n)
		}
	})
}

// TestFlowsThatAreAllUsedGiveOneUp: one is evicted though none was silent.
func TestFlowsThatAreAllUsedGiveOneUp(t *testing.T) {
	fs := &flows{open: make(map[flowKey]*flow)}
	for number := range uint32(maxFlows) {
		fs.put(silentFlow(number, 1))
	}
	for _, f := range fs.open {
		f.used.Store(2)
	}
	fs.put(silentFlow(maxFlows, 3))
	if len(fs.open) != maxFlows || fs.get(flowKey{3, maxFlows}) == nil {
		t.Errorf("%d flows are open", len(fs.open))
	}
}
