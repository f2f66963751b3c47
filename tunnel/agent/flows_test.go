package agent

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/spec"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

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
	fs := &flows{live: &live{agent: &Agent{log: slog.New(slog.DiscardHandler)}, session: session}}
	tun := newTunnel("tun_1", spec.Tunnel{Type: wire.TypeUDP, LocalIP: "127.0.0.1", LocalPort: 53}, time.Now())
	f := &flow{key: flowKey{endpoint: 3, number: 7}, tunnel: tun, route: tun.route.Load()}
	f.used.Store(1)
	return fs, f, session
}

func TestFlowEndsWhoseSocketFailsAtEveryRead(t *testing.T) {
	fs, f, session := scriptedFlow(t)
	reads := 0
	origin := scripted{func() ([]byte, error) {
		if reads++; reads > 1e6 {
			f.ended.Store(true) // it would go on for ever
		}
		return nil, errors.New("the network is down")
	}}
	fs.carry(t.Context(), f, origin, origin)
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
	origin := scripted{func() ([]byte, error) {
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
	fs.carry(t.Context(), f, origin, origin)
	d, err := wire.ParseFlow(session.last)
	if err != nil || d.Kind == wire.FlowClose || string(d.Payload) != "here now" {
		t.Errorf("the relay was sent %+v, %v; want the answer of the service that came back", d, err)
	}
}

// The owner of a service whose answers are too long for visitors who may be forged
// learns why nothing comes: at the flow, and once from the log and the relay.
func TestAnswersThatAreNotPassedOnAreTold(t *testing.T) {
	service, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, spec.Tunnel{Type: "udp", LocalPort: service.LocalAddr().(*net.UDPAddr).Port})
	r.mu.Lock()
	number := r.numbers[tun.ID]
	r.mu.Unlock()
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
		return slices.ContainsFunc(r.reports, func(e wire.AgentError) bool { return e.Key == tun.ID && e.Message == errWithheld.Error() })
	})
	send(wire.FlowClose)
	eventually(t, "the flow says so", func() bool {
		list := a.Requests(inspect.Filter{Kind: inspect.KindFlow})
		return len(list) == 1 && list[0].State == "failed" && list[0].Error == errWithheld.Error()
	})
}
