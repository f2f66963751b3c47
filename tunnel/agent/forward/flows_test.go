package forward

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/origin"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

// quiet returns a Forwarder whose news nobody hears.
func quiet(origins *origin.Dialer) *Forwarder {
	return New(Config{
		Origins: origins, Inspector: &inspect.Inspector{}, Logger: slog.New(slog.DiscardHandler),
		Activity: make(chan struct{}, 1), Complain: func(string, string, string) {},
	})
}

// scripted is an origin's socket that answers each read with next.
type scripted struct{ next func() ([]byte, error) }

func (s scripted) Read() ([][]byte, error) {
	b, err := s.next()
	return [][]byte{b}, err
}
func (s scripted) Done()                           {}
func (s scripted) SetReadDeadline(time.Time) error { return nil }

// deafSession takes datagrams and keeps the last.
type deafSession struct {
	link.Session
	last []byte
}

func (s *deafSession) SendDatagram(b []byte) error {
	s.last = append([]byte(nil), b...)
	return nil
}
func (s *deafSession) MaxDatagram() int      { return 1200 }
func (s *deafSession) Done() <-chan struct{} { return nil }

func scriptedFlow(t *testing.T) (*flows, *flow, *deafSession) {
	t.Helper()
	session := &deafSession{}
	fs := &flows{Forwarder: quiet(&origin.Dialer{Timeout: time.Second}), session: session}
	tun := NewTunnel("tun_1", definition.Tunnel{Type: wire.TypeUDP, LocalIP: "127.0.0.1", LocalPort: 53})
	f := &flow{key: flowKey{endpoint: 3, number: 7}, tunnel: tun, route: tun.route.Load()}
	f.used.Store(1)
	var err error
	if f.origins, err = fs.origins.Choose(t.Context(), f.route.service, nil); err != nil {
		t.Fatal(err)
	}
	return fs, f, session
}

func TestFlowEndsWhoseSocketFailsAtEveryRead(t *testing.T) {
	fs, f, session := scriptedFlow(t)
	reads := 0
	socket := scripted{func() ([]byte, error) {
		if reads++; reads > 1e6 {
			f.ended.Store(true) // it would go on for ever
		}
		return nil, errors.New("the network is down")
	}}
	fs.carry(t.Context(), f, socket, socket)
	if reads > 10*maxFailures {
		t.Errorf("the broken socket was read %d times, want at most %d", reads, 10*maxFailures)
	}
	d, err := wire.ParseFlow(session.last)
	if err != nil || d.Kind != wire.FlowClose || d.Number != 7 {
		t.Errorf("the relay was told %+v, %v; want the end of flow 7", d, err)
	}
}

// TestFlowOutlivesRefusals: every packet to a service that is down may bring an
// ICMP message, and the flow waits for the service however many come.
func TestFlowOutlivesRefusals(t *testing.T) {
	fs, f, session := scriptedFlow(t)
	reads := 0
	socket := scripted{func() ([]byte, error) {
		reads++
		switch {
		case reads <= 20*maxFailures:
			f.used.Add(1) // the visitor sent one more
			return nil, syscall.ECONNREFUSED
		case reads == 20*maxFailures+1:
			return []byte("here now"), nil
		}
		return nil, net.ErrClosed
	}}
	fs.carry(t.Context(), f, socket, socket)
	d, err := wire.ParseFlow(session.last)
	if err != nil || d.Kind == wire.FlowClose || string(d.Payload) != "here now" {
		t.Errorf("the relay was sent %+v, %v; want the answer of the service that came back", d, err)
	}
}

// TestFlowKeepsLittle: what is kept for another address is bounded, and given up
// for a service that only listens.
func TestFlowKeepsLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &flow{outlet: new(origin.Outlet), unsure: true}
		large, small := make([]byte, 60000), []byte("small")
		for range 100 {
			f.keep([][]byte{large, small})
		}
		if len(f.queued) > maxQueued || f.size > maxQueuedBytes || !bytes.Equal(f.queued[0], large) {
			t.Errorf("keeps %d packets of %d bytes, want %d of %d at most", len(f.queued), f.size, maxQueued, maxQueuedBytes)
		}
		time.Sleep(refusalWait + 1)
		f.keep([][]byte{small})
		if f.unsure || f.queued != nil || f.size != 0 {
			t.Errorf("keeps %d packets after %v without a refusal", len(f.queued), refusalWait)
		}
	})
}

// TestNoFlowBeginsBehindItsEnd: what ends a flow may overtake its packets, or be sent while
// one of them is.
func TestNoFlowBeginsBehindItsEnd(t *testing.T) {
	service, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	fs, f, _ := scriptedFlow(t)
	tun := NewTunnel("tun_1", definition.Tunnel{Type: wire.TypeUDP, LocalIP: "127.0.0.1", LocalPort: service.LocalAddr().(*net.UDPAddr).Port})
	fs.open, fs.numbers = make(map[flowKey]*flow), &numbers{tunnels: map[uint32]*Tunnel{f.key.endpoint: tun}}
	defer fs.wg.Wait()
	defer fs.abort()
	key := func(number uint32) flowKey { return flowKey{f.key.endpoint, number} }
	packet := func(number uint32) { fs.deliver(t.Context(), key(number), [][]byte{[]byte("x")}) }
	end := func(number uint32) { fs.told(t.Context(), key(number), wire.Flow{Kind: wire.FlowClose}) }

	lives := func(number uint32) bool {
		f := fs.get(key(number))
		return f != nil && !f.ended.Load()
	}

	if packet(1); !lives(1) {
		t.Fatal("a packet began no flow")
	}
	end(1)
	if packet(1); lives(1) {
		t.Error("a packet behind the flow's end began another")
	}
	end(2)
	packet(2)
	fs.told(t.Context(), key(2), wire.Flow{Kind: wire.FlowFrom, Payload: []byte("192.0.2.1:7")})
	if lives(2) {
		t.Error("a flow began whose end was faster than its beginning")
	}
	for n := range uint32(3 * maxFlows) {
		end(10 + n)
	}
	if packet(1); !lives(1) {
		t.Error("ends are remembered for ever")
	}
}
