package visitor

import (
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/link"
)

// TestALoadBalancerIsNotOneVisitor checks that connections from a load balancer without a
// PROXY header count as many visitors'.
func TestALoadBalancerIsNotOneVisitor(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	loopback := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for _, c := range []struct {
		trusted []netip.Prefix
		want    int
	}{{nil, 2}, {loopback, 3}} {
		e := New(Config{PerAddress: 2, Most: 16, Balancers: c.trusted, Proxy: ProxyOff, Log: slog.New(slog.DiscardHandler)})
		got := 0
		var in []*Conn
		for range 3 {
			visitor, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer visitor.Close()
			conn, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if v := e.Admit(conn); v != nil {
				in = append(in, v)
				got++
			}
		}
		if got != c.want || e.Figures().Open != got || e.Figures().TurnedAway != uint64(3-got) {
			t.Errorf("trusted %v: %d of 3 connections are let in, %d counted; want %d", c.trusted, got, e.Figures().Open, c.want)
		}
		for _, v := range in {
			v.Close()
			v.Close() // as who ends a visit and who serves it both do
		}
		if e.Figures().Open != 0 || len(e.open) != 0 || e.idle.first != nil {
			t.Errorf("trusted %v: when all have gone, %d are counted, of %d addresses, and the first that rests is %v; want none", c.trusted, e.Figures().Open, len(e.open), e.idle.first)
		}
	}
}

// TestWhoAsksForNothingMakesRoom checks that at the limit, the connection that has been idle
// longest is closed, and none that is being served.
func TestWhoAsksForNothingMakesRoom(t *testing.T) {
	vs := New(Config{PerAddress: 2, Most: 16})
	var ended []string
	names := map[string]*Conn{}
	come := func(name string, n byte) error {
		v := &Conn{Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, n}), 1)}
		v.cut = func() {
			ended = append(ended, name)
			vs.Forget(&v.Resting)
			vs.leave(v.Addr.Addr())
		}
		names[name] = v
		vs.Rest(&v.Resting, v.cut)
		err := vs.enter(v.Addr.Addr(), false, &v.Resting)
		if err != nil {
			vs.Forget(&v.Resting)
		}
		return err
	}
	for i, name := range strings.Split("abcdefghijklmnop", "") {
		if err := come(name, byte(i)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	vs.Work(&names["a"].Resting)
	vs.pause(names["b"])                    // it has been answered, and rests since now
	vs.Rest(&names["c"].Resting, func() {}) // a header begins: as b
	vs.Rest(&names["c"].Resting, names["c"].cut)
	for _, name := range []string{"1", "2"} {
		if err := come(name, 200+name[0]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := strings.Join(ended, " "); got != "d e" {
		t.Errorf("%s made room, want d e", got)
	}
	for _, v := range names {
		vs.Work(&v.Resting)
	}
	if err := come("3", 251); err != errFull || vs.all != 16 {
		t.Errorf("where all are served one more is told %v, and %d are open", err, vs.all)
	}
	vs.pause(names["d"]) // which has gone
	if vs.idle.first != nil {
		t.Error("one that has gone is kept")
	}
	if vs.spared != 2 {
		t.Errorf("%d are said to have made room", vs.spared)
	}
}

// TestWhoMakesRoomMustGo checks that connections that were told to close but have not do not
// allow any number of new ones.
func TestWhoMakesRoomMustGo(t *testing.T) {
	vs := New(Config{PerAddress: 1000, Most: 16})
	let := 0
	told := map[int]int{}
	for i := range 100 {
		v := &Conn{Addr: netip.MustParseAddrPort("192.0.2.1:1"), cut: func() { told[i]++ }}
		vs.Rest(&v.Resting, v.cut)
		if vs.enter(v.Addr.Addr(), false, &v.Resting) == nil {
			let++
		}
	}
	if let != 18 {
		t.Errorf("%d were let in, want 18", let)
	}
	if want := map[int]int{0: 1, 1: 1}; !maps.Equal(told, want) {
		t.Errorf("told to go, and how often: %v, want %v", told, want)
	}
}

// TestADrainEndsWhatAsksForNothing covers all idle connections except those that http.Server
// ends.
func TestADrainEndsWhatAsksForNothing(t *testing.T) {
	vs := New(Config{PerAddress: 9, Most: 9})
	ended := map[int]bool{}
	var all [5]Conn
	for i := range all {
		all[i].cut = func() { ended[i] = true }
		vs.Rest(&all[i].Resting, all[i].cut)
	}
	vs.pause(&all[1])
	vs.Work(&all[3].Resting)
	vs.Drain(t.Context())
	if len(ended) != 3 || !ended[0] || !ended[2] || !ended[4] {
		t.Errorf("ended are %v, want 0, 2 and 4", ended)
	}
	vs.Rest(&all[3].Resting, all[3].cut)
	if !ended[3] {
		t.Error("what comes to rest later is not ended")
	}
}

// TestADrainLetsNobodyIn also checks that a drain is over as soon as the last visitor has
// gone.
func TestADrainLetsNobodyIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		vs := New(Config{PerAddress: 9, Most: 9})
		vs.Drain(t.Context()) // of nobody
		if err := vs.enter(netip.MustParseAddr("192.0.2.9"), false, nil); err != errTurnedAway {
			t.Errorf("drained: got %v, want %v", err, errTurnedAway)
		}
		vs = New(Config{PerAddress: 9, Most: 9})
		first, second := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		for _, a := range []netip.Addr{first, second} {
			if err := vs.enter(a, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		began, ended := time.Now(), make(chan time.Duration, 1)
		go func() {
			vs.Drain(t.Context())
			ended <- time.Since(began)
		}()
		const apart = arriving / 4
		time.Sleep(apart)
		vs.leave(first)
		time.Sleep(apart)
		vs.leave(second)
		if got := <-ended; got != 2*apart {
			t.Errorf("the drain took %v, want %v", got, 2*apart)
		}
	})
}

func TestAnAddressHasNoMoreThanItsPart(t *testing.T) {
	vs := New(Config{PerAddress: 2, Most: 16})
	// One network of IPv6 is one address.
	for i, step := range []struct {
		addr string // who comes; "": one of the first network leaves
		want error
	}{{"2001:db8::1", nil}, {"2001:db8::2", nil}, {"2001:db8::3", errTurnedAway}, {"2001:db8:0:1::1", nil}, {"", nil}, {"2001:db8::4", nil}, {"2001:db8::5", errTurnedAway}} {
		if step.addr == "" {
			vs.leave(netip.MustParseAddr("2001:db8::1"))
		} else if got := vs.enter(netip.MustParseAddr(step.addr), false, nil); got != step.want {
			t.Errorf("step %d: %s: got %v, want %v", i, step.addr, got, step.want)
		}
	}
}

// guestStream is a guest's stream that counts how often it was given up and closed.
type guestStream struct {
	link.Stream

	resets, closes int
}

func (s *guestStream) Reset()       { s.resets++ }
func (s *guestStream) Close() error { s.closes++; return nil }

// TestGuestsOfAnAddressAreBounded checks that guests are limited like connections.
func TestGuestsOfAnAddressAreBounded(t *testing.T) {
	vs := New(Config{PerAddress: 1, Most: 9, Log: slog.New(slog.DiscardHandler)})
	g := Guest{Addr: netip.MustParseAddrPort("192.0.2.1:1")}
	var first, second guestStream
	in := vs.AdmitGuest(&first, nil, g)
	if in == nil || vs.AdmitGuest(&second, nil, g) != nil {
		t.Fatal("got another guest than the first let in")
	}
	if first.resets+first.closes != 0 || second.resets != 1 || second.closes != 1 || vs.Figures() != (Figures{Open: 1, TurnedAway: 1}) {
		t.Errorf("got the first stream %+v, the second %+v, figures %+v, want the second ended and counted", first, second, vs.Figures())
	}
	in.Close()
	if vs.Figures().Open != 0 || vs.idle.first != nil {
		t.Errorf("when all have gone: %d are counted, and one rests: %t", vs.Figures().Open, vs.idle.first != nil)
	}
	if vs.AdmitGuest(new(guestStream), nil, g) == nil {
		t.Error("got a guest turned away whose address has none")
	}
}

// TestVisitorsOfALoadBalancer checks that visitors are counted by the address in their header,
// and the load balancer's own connections, such as health checks, by its own address.
func TestVisitorsOfALoadBalancer(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	const (
		own     = "127.0.0.1"
		none    = "" // it is turned away
		v2      = "\r\n\r\n\x00\r\nQUIT\n"
		address = "\x11\x00\x0c\xc0\x00\x02\x07\xc6\x33\x64\x01\x0f\xa0\x01\xbb" // TCP by IPv4, 192.0.2.7:4000 to 198.51.100.1:443
	)
	balancers := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	for name, test := range map[string]struct {
		header string
		proxy  ProxyHeader
		from   []netip.Prefix
		want   string
	}{
		"version 1":                       {"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443\r\n", ProxyRequired, balancers, "192.0.2.7"},
		"version 1 of no address":         {"PROXY UNKNOWN\r\n", ProxyRequired, balancers, own},
		"version 2":                       {v2 + "\x21" + address, ProxyRequired, balancers, "192.0.2.7"},
		"version 2 of the balancer's own": {v2 + "\x20" + address, ProxyRequired, balancers, own},
		"none where it may be left out":   {"GET / HTTP/1.1\r\n", ProxyAccepted, balancers, own},
		"none where there must be one":    {"GET / HTTP/1.1\r\n", ProxyRequired, balancers, none},
		"one of who is no balancer":       {"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443\r\n", ProxyRequired, nil, own},
		"one where none is read":          {"PROXY TCP4 192.0.2.7 198.51.100.1 4000 443\r\n", ProxyOff, balancers, own},
	} {
		t.Run(name, func(t *testing.T) {
			vs := New(Config{PerAddress: 1, Most: 9, Balancers: test.from, Proxy: test.proxy, HeaderTime: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})
			dialed, err := net.Dial("tcp", ln.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer dialed.Close()
			if _, err := dialed.Write([]byte(test.header)); err != nil {
				t.Fatal(err)
			}
			conn, err := ln.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			v := vs.Admit(conn)
			if v == nil {
				if test.want != none || vs.Figures() != (Figures{TurnedAway: 1}) || vs.idle.first != nil {
					t.Errorf("it was turned away, figures %+v; want %q", vs.Figures(), test.want)
				}
				return
			}
			defer v.Close()
			if got := v.Addr.Addr().String(); got != test.want {
				t.Errorf("got a visitor of %s, want %q", got, test.want)
			}
		})
	}
}
