package agent

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/wire"
)

// echoAt answers each packet that comes to addr with it and says which flow asks;
// nil if somebody is there already.
func echoAt(t *testing.T, addr string) *net.UDPConn {
	t.Helper()
	pc, err := net.ListenPacket("udp", addr)
	if err != nil {
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := pc.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = pc.WriteTo(append([]byte("re:"), buf[:n]...), from)
		}
	})
	t.Cleanup(func() { pc.Close(); wg.Wait() })
	return pc.(*net.UDPConn)
}

// echoAtSix returns an echo at ::1, whose port nobody has at 127.0.0.1.
func echoAtSix(t *testing.T) (*net.UDPConn, int) {
	t.Helper()
	for range 100 {
		six := echoAt(t, "[::1]:0")
		if six == nil {
			t.Skip("this machine has no IPv6 loopback")
		}
		port := six.LocalAddr().(*net.UDPAddr).Port
		if four, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			four.Close()
			return six, port
		}
	}
	t.Fatal("no port is free at both addresses")
	return nil, 0
}

// TestFlowFindsItsServiceAtAnyAddress: the first packet of a visitor gets its
// answer, and what is remembered spares the next visitors the search.
func TestFlowFindsItsServiceAtAnyAddress(t *testing.T) {
	_, port := echoAtSix(t)
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: "udp", LocalPort: port, LocalIP: "localhost"})
	sent := 0
	for i, size := range []int{5, 0, 60000, 1200} {
		payload := bytes.Repeat([]byte{byte(i)}, size)
		sent += size
		if got := udpVisitor(t, r, tun.ID, uint32(i+1), payload); !bytes.Equal(got, append([]byte("re:"), payload...)) {
			t.Errorf("visitor %d: got %d bytes, want the %d that it sent with re: before", i, len(got), size)
		}
		if i == 0 { // those who are not spared the search would be heard at this address, which says nothing
			four, err := net.ListenPacket("udp", fmt.Sprintf("127.0.0.1:%d", port))
			if err != nil {
				t.Skip("another program took the port")
			}
			defer four.Close()
		}
	}
	if e := a.Endpoints()[0]; e.Bytes.In != int64(sent) || e.Bytes.Out != int64(sent+4*3) {
		t.Errorf("got %+v, want each packet counted once", e.Bytes)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.reports) > 0 {
		t.Errorf("the relay was told of %+v, of a service that answers", r.reports)
	}
	for _, s := range a.Requests(inspect.Filter{}) {
		if s.Error != "" {
			t.Errorf("the inspector says %q of a visitor that was answered", s.Error)
		}
	}
}

// TestFlowFollowsItsService has a service go down and come back at the other
// address while a visitor goes on asking.
func TestFlowFollowsItsService(t *testing.T) {
	six, port := echoAtSix(t)
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: "udp", LocalPort: port, LocalIP: "localhost"})
	udpVisitor(t, r, tun.ID, 1, []byte("first"))
	six.Close()
	r.mu.Lock()
	number := r.numbers[tun.ID]
	r.mu.Unlock()
	packet := uint16(100)
	ask := func() {
		packet++
		d := wire.Flow{Endpoint: number, Number: 1, Packet: packet, Payload: []byte("again")}
		if _, err := wire.SplitFlow(nil, d, r.session().MaxDatagram(), r.session().SendDatagram); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "it is told that nobody listens at either", func() bool {
		ask()
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.ContainsFunc(r.reports, func(e wire.AgentError) bool { return strings.Contains(e.Message, "nothing listens") })
	})
	if echoAt(t, fmt.Sprintf("127.0.0.1:%d", port)) == nil {
		t.Skip("another program took the port")
	}
	var answered atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	session := r.session()
	wg.Go(func() {
		for buf := make([]byte, 64<<10); ; { // the first may be of before, as that nobody listens
			n, err := session.ReceiveDatagram(ctx, buf)
			if err != nil {
				return
			}
			d, err := wire.ParseFlow(buf[:n])
			if err == nil && d.Number == 1 && string(d.Payload) == "re:again" {
				answered.Store(true)
			}
		}
	})
	eventually(t, "it answers where it is now", func() bool {
		ask()
		return answered.Load()
	})
}

// TestFlowFollowsTheNameOfItsService has a name come to mean another address, as
// that of a container does which was made anew, while a visitor goes on asking: at
// the old one nobody listens, or nothing is heard of it any more.
func TestFlowFollowsTheNameOfItsService(t *testing.T) {
	for name, refused := range map[string]bool{"refused": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			six, port := echoAtSix(t)
			r := newFakeRelay(t)
			a, _ := configured(t, r, Config{})
			var now atomic.Pointer[netip.Addr]
			loopback := netip.IPv6Loopback()
			now.Store(&loopback)
			a.origins.Lookup = func(context.Context, string, string) ([]netip.Addr, error) { return []netip.Addr{*now.Load()}, nil }
			a.origins.LookAgain = 10 * time.Millisecond
			tun := mustCreate(t, a, definition.Tunnel{Type: "udp", LocalPort: port, LocalIP: "service.test"})
			udpVisitor(t, r, tun.ID, 1, []byte("first"))
			six.Close()
			if !refused {
				deaf, err := net.ListenPacket("udp", six.LocalAddr().String())
				if err != nil {
					t.Skip("another program took the port")
				}
				defer deaf.Close()
			}
			if echoAt(t, fmt.Sprintf("127.0.0.1:%d", port)) == nil {
				t.Skip("another program took the port")
			}
			four := netip.AddrFrom4([4]byte{127, 0, 0, 1})
			now.Store(&four)
			r.mu.Lock()
			number := r.numbers[tun.ID]
			r.mu.Unlock()
			answers := make(chan []byte, 1)
			var wg sync.WaitGroup
			defer wg.Wait()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			wg.Go(func() {
				buf := make([]byte, 64<<10)
				if n, err := r.session().ReceiveDatagram(ctx, buf); err == nil {
					answers <- buf[:n]
				}
			})
			packet := uint16(100)
			eventually(t, "it answers where the name leads now", func() bool {
				packet++
				d := wire.Flow{Endpoint: number, Number: 1, Packet: packet, Payload: []byte("again")}
				if _, err := wire.SplitFlow(nil, d, r.session().MaxDatagram(), r.session().SendDatagram); err != nil {
					t.Fatal(err)
				}
				select {
				case got := <-answers:
					d, err := wire.ParseFlow(got)
					return err == nil && d.Number == 1 && string(d.Payload) == "re:again"
				default:
					return false
				}
			})
			if open := a.Endpoints()[0].Connections; open.Total != 1 {
				t.Errorf("got %+v, want the one flow to have moved", open)
			}
		})
	}
}
