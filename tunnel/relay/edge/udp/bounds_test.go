package udp

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/udpbatch"
	"adit/tunnel/link"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/wire"
)

// counted is an agent's session that counts the flows that it is told the end of.
type counted struct {
	link.Session
	closed int
	done   chan struct{}
}

func (s *counted) SendDatagram(b []byte) error {
	if d, err := wire.ParseFlow(b); err == nil && d.Kind == wire.FlowClose {
		s.closed++
	}
	return nil
}

func (s *counted) MaxDatagram() int      { return 1200 }
func (s *counted) GatherDatagrams()      {}
func (s *counted) SendGathered()         {}
func (s *counted) Done() <-chan struct{} { return s.done }

func (s *counted) Err() error {
	select {
	case <-s.done:
		return errors.New("the session has ended")
	default:
		return nil
	}
}

// unserved is a port whose packets a test brings itself. entered counts what holds a
// place in the policy, and records what was told of.
type unserved struct {
	*Port

	session          *counted
	entered, records int
}

func newUnserved(t *testing.T, cfg Config) *unserved {
	t.Helper()
	return newUnservedOf(t, "", cfg)
}

// newUnservedOf is newUnserved for a client.
func newUnservedOf(t *testing.T, client string, cfg Config) *unserved {
	t.Helper()
	u := &unserved{session: &counted{done: make(chan struct{})}}
	cfg.Enter = func(*routing.Endpoint, netip.Addr) (string, bool, func()) {
		u.entered++
		return "", true, func() { u.entered-- }
	}
	cfg.Keeps = func(*routing.Endpoint, netip.Addr) bool { return true }
	cfg.Record = func(*routing.Endpoint, *routing.Backend, wire.Access) { u.records++ }
	ep, err := routing.New(routing.Config{}).Attach(routing.Face{Type: wire.TypeUDP}, &routing.Backend{Agent: &routing.Agent{ClientID: client, Session: u.session}})
	if err != nil {
		t.Fatal(err)
	}
	u.Port = &Port{all: New(cfg), ep: ep, flows: map[netip.AddrPort]*flow{}, owners: map[netip.Prefix]int{}, told: map[netip.Prefix]time.Time{}}
	return u
}

func (u *unserved) from(visitor string) *flow {
	return u.flowOf(udpbatch.Addr{AddrPort: netip.MustParseAddrPort(visitor)})
}

// TestFlowsAreBounded checks the limits per address and in total, and that a flow that ends
// makes room.
func TestFlowsAreBounded(t *testing.T) {
	const one, two, three = "192.0.2.1:1", "192.0.2.1:2", "192.0.2.1:3"
	u := newUnserved(t, Config{Flows: 5, FlowsPerAddress: 2, Idle: time.Minute})
	for i, step := range []struct {
		from string
		ends bool
		want bool // there is a flow
	}{
		{from: one, want: true},
		{from: two, want: true},
		{from: three}, // one too many of the address
		{from: one, want: true},
		{from: "[2001:db8::1]:1", want: true},
		{from: "[2001:db8::2]:1", want: true},
		{from: "[2001:db8::3]:1"}, // a network of IPv6 is one address
		{from: "192.0.2.2:1", want: true},
		{from: "192.0.2.3:1"}, // one too many of all
		{from: "192.0.2.2:1", ends: true, want: true},
		{from: one, ends: true, want: true},
		{from: three, want: true},
		{from: one}, // whose place is another's
	} {
		f := u.from(step.from)
		if (f != nil) != step.want {
			t.Fatalf("step %d: %s: got flow %v, want one: %t", i, step.from, f, step.want)
		}
		if step.ends {
			u.endOne(f)
			u.endOne(f) // as who drops it and who sweeps both do
		}
	}
	if len(u.flows) != 4 || u.entered != 4 || u.records != 2 || u.session.closed != 2 {
		t.Errorf("got %d flows, %d places, %d records and %d ends, want 4, 4, 2 and 2", len(u.flows), u.entered, u.records, u.session.closed)
	}
	u.end(func(*flow) bool { return true })
	if len(u.flows) != 0 || len(u.owners) != 0 || u.entered != 0 || u.records != 6 || u.session.closed != 6 {
		t.Errorf("when all have ended: got flows %v of %v, %d places, %d records and %d ends, want none, none, 0, 6 and 6", u.flows, u.owners, u.entered, u.records, u.session.closed)
	}
}

// TestFlowsOfAClientsPortsAreBoundedTogether has a client open one port after another, each
// with as many flows as a port may have. Another client's visitors still get their share.
func TestFlowsOfAClientsPortsAreBoundedTogether(t *testing.T) {
	cfg := Config{Flows: 4, FlowsPerAddress: 4, OfAll: 10, Idle: time.Minute}
	all := New(cfg)
	port := func(client string) *unserved {
		u := newUnservedOf(t, client, cfg)
		u.all.shares = all.shares
		return u
	}
	fill := func(u *unserved) int {
		for i := range 10 {
			u.from(fmt.Sprintf("192.0.2.%d:1", i))
		}
		return len(u.flows)
	}
	var busy []*unserved
	for i, want := range []int{4, 4, 2, 0} {
		busy = append(busy, port("busy"))
		if n := fill(busy[i]); n != want {
			t.Errorf("port %d of the client has %d flows, want %d", i, n, want)
		}
	}
	one, two := port("other"), port("other")
	if n, m := fill(one), fill(two); n != 4 || m != 1 {
		t.Errorf("the other client has %d and %d flows, want its part, 4 and 1", n, m)
	}
	for _, u := range append(busy[:2:2], one, two) {
		u.end(func(*flow) bool { return true })
	}
	if n := fill(busy[3]); n != 4 {
		t.Errorf("when others have ended, there are %d flows, want 4", n)
	}
	busy[2].end(func(*flow) bool { return true })
	busy[3].end(func(*flow) bool { return true })
	if n, clients := all.shares.Taken(); n != 0 || clients != 0 {
		t.Errorf("in the end %d flows are counted, of %d clients", n, clients)
	}
}

// TestFlowsEndThatAreIdle also ends the flows of a session that has ended, and forgets whose
// refusals were recorded.
func TestFlowsEndThatAreIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle, tick = time.Minute, 15 * time.Second
		u := newUnserved(t, Config{Flows: 4, FlowsPerAddress: 4, Idle: idle})
		stop, swept := make(chan struct{}), make(chan struct{})
		go func() {
			u.sweep(stop)
			close(swept)
		}()
		open := func() int {
			synctest.Wait()
			u.mu.Lock()
			defer u.mu.Unlock()
			return len(u.flows)
		}
		time.Sleep(tick / 2) // away from the sweeps
		send := func(from string) {
			u.receive(udpbatch.Addr{AddrPort: netip.MustParseAddrPort(from)}, nil, false)
		}
		send("192.0.2.1:1")
		send("192.0.2.2:1")
		u.tells(netip.MustParseAddr("192.0.2.3"), time.Now())
		time.Sleep(idle - tick)
		send("192.0.2.2:1")
		if got := open(); got != 2 {
			t.Errorf("before any is idle: got %d flows, want 2", got)
		}
		time.Sleep(2 * tick)
		if got := open(); got != 1 || len(u.told) != 0 {
			t.Errorf("when one is idle: got %d flows, %d that were told of, want the other alone", got, len(u.told))
		}
		close(u.session.done)
		time.Sleep(tick)
		if got := open(); got != 0 || u.records != 2 {
			t.Errorf("when the session has ended: got %d flows, %d records, want 0 and 2", got, u.records)
		}
		close(stop)
		<-swept
	})
}

// TestWhoIsNotLetInTakesNoPlace checks that refused visitors do not count towards the limits.
func TestWhoIsNotLetInTakesNoPlace(t *testing.T) {
	u := newUnserved(t, Config{Flows: 4, FlowsPerAddress: 4, OfAll: 4, Idle: time.Minute})
	u.all.cfg.Enter = func(*routing.Endpoint, netip.Addr) (string, bool, func()) { return "deny", false, func() {} }
	f := u.from("192.0.2.1:1")
	if n, _ := u.all.shares.Taken(); f != nil || n != 0 {
		t.Errorf("got flow %v, %d places taken", f, n)
	}
}
