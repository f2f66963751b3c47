package udp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/wire"
)

// gatherer is an agent's session that notes what it is sent.
type gatherer struct {
	link.Session
	mu        sync.Mutex
	sent      []string
	gathering int
	gathered  bool // some came while it gathered
	came      chan struct{}
}

func (g *gatherer) SendDatagram(b []byte) error {
	d, err := wire.ParseFlow(b)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.Kind != wire.FlowWhole {
		return nil
	}
	g.sent = append(g.sent, string(d.Payload))
	g.gathered = g.gathered || g.gathering > 0
	g.came <- struct{}{}
	return nil
}

func (g *gatherer) GatherDatagrams()      { g.gather(1) }
func (g *gatherer) SendGathered()         { g.gather(-1) }
func (g *gatherer) MaxDatagram() int      { return 1200 }
func (g *gatherer) Done() <-chan struct{} { return nil }
func (g *gatherer) Err() error            { return nil }

func (g *gatherer) gather(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gathering += n
}

// TestBurstOfVisitorsGoesToItsSessions sends a burst of packets from two visitors whose flows
// belong to two sessions. All packets are forwarded, in order, and none stays behind in a
// session that gathers.
func TestBurstOfVisitorsGoesToItsSessions(t *testing.T) {
	const visitors, packets = 2, 100
	came := make(chan struct{}, visitors*packets)
	sessions := []*gatherer{{came: came}, {came: came}}
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	var ep *routing.Endpoint
	table := routing.New(routing.Config{})
	for i, instance := range []string{"a", "b"} {
		if ep, err = table.Attach(routing.Face{Type: wire.TypeUDP, Mode: wire.ModeBalanced}, &routing.Backend{Agent: &routing.Agent{Session: sessions[i], Instance: instance}}); err != nil {
			t.Fatal(err)
		}
	}
	var from []net.Conn
	for range visitors {
		c, err := net.Dial("udp", conn.LocalAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		from = append(from, c)
	}
	for i := range packets { // they wait at the socket until the port is served
		for n, c := range from {
			if _, err := fmt.Fprintf(c, "%d of %d", i, n); err != nil {
				t.Fatal(err)
			}
		}
	}
	p := newPort(letting(func(*routing.Endpoint, *routing.Backend, wire.Access) {}), ep, conn)
	done := make(chan struct{})
	go func() {
		p.Serve()
		close(done)
	}()
	for n := range visitors * packets {
		select {
		case <-came:
		case <-time.After(20 * time.Second):
			t.Fatalf("%d of %d packets went on", n, visitors*packets)
		}
	}
	p.Close()
	<-done
	for _, s := range sessions {
		if len(s.sent) != packets || !slices.IsSortedFunc(s.sent, func(a, b string) int {
			var i, j, of int
			_, _ = fmt.Sscanf(a, "%d of %d", &i, &of)
			_, _ = fmt.Sscanf(b, "%d of %d", &j, &of)
			return i - j
		}) {
			t.Errorf("a session was sent %d packets, or not in order: %.200q", len(s.sent), s.sent)
		}
		if s.gathering != 0 || !s.gathered {
			t.Errorf("gathering %d after the end; gathered while many came: %v", s.gathering, s.gathered)
		}
	}
}

// TestOnlyWhatAVisitorMayHaveIsAnswered sends a burst of answers that exceeds what an address
// that may be forged may receive.
func TestOnlyWhatAVisitorMayHaveIsAnswered(t *testing.T) {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	ports := letting(nil)
	p := newPort(ports, new(routing.Endpoint), conn)
	session := &toldSession{}
	f := &flow{port: p, number: 7, visitor: far.LocalAddr().(*net.UDPAddr).AddrPort(), backend: &routing.Backend{Agent: &routing.Agent{Session: session}, Number: 3}}
	f.visitor = netip.AddrPortFrom(f.visitor.Addr().Unmap(), f.visitor.Port())
	f.at.AddrPort = f.visitor
	f.asked(10)
	f.answer([][]byte{make([]byte, 10), make([]byte, 50), make([]byte, 20), []byte("more")})
	buf := make([]byte, 100)
	for _, want := range []int{10, 20} {
		_ = far.SetReadDeadline(time.Now().Add(20 * time.Second))
		if n, err := far.Read(buf); n != want || err != nil {
			t.Errorf("got %d bytes, %v; want %d", n, err, want)
		}
	}
	if out, dropped := f.out.Load(), ports.unproved.Load(); out != 30 || dropped != 2 {
		t.Errorf("counted %d bytes, and %d packets that may not go; want 30 and 2", out, dropped)
	}
	if len(session.told) != 1 {
		t.Fatalf("the agent was told %d times of two packets, want once", len(session.told))
	}
	if d, err := wire.ParseFlow(session.told[0]); err != nil || d.Kind != wire.FlowWithheld || d.Endpoint != 3 || d.Number != 7 {
		t.Errorf("the agent was told %+v, %v", d, err)
	}
}

// toldSession keeps the datagrams that it is given.
type toldSession struct {
	link.Session
	told [][]byte
}

func (s *toldSession) SendDatagram(b []byte) error {
	s.told = append(s.told, slices.Clone(b))
	return nil
}
