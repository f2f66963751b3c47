package udp

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/edge/visitor"
)

// TestPrivateVisitsAreBounded checks that visits are limited like flows, and that none begins
// with a tunnel that has been removed.
func TestPrivateVisitsAreBounded(t *testing.T) {
	u := newUnserved(t, Config{Flows: 2, Idle: time.Minute})
	guests := &counted{done: make(chan struct{})}
	at := &routing.Agent{Session: guests}
	g := visitor.Guest{Client: "ann", Addr: netip.MustParseAddrPort("192.0.2.1:1")}
	p := u.all.OpenPrivate(u.ep)
	b := u.ep.Pick()[0]
	begin := func(at *routing.Agent, b *routing.Backend) *Visit {
		t.Helper()
		v, err := p.Begin(at, g, b)
		if (v == nil) != errors.Is(err, ErrNoVisit) {
			t.Fatalf("got %v, error %v, want a visit or %v", v, err, ErrNoVisit)
		}
		return v
	}
	first, second := begin(at, b), begin(at, b)
	if first == nil || second == nil || begin(at, b) != nil {
		t.Fatal("got another number of visits than two")
	}
	first.End()
	if u.session.closed != 1 || guests.closed != 0 {
		t.Errorf("one has ended: the tunnel's agent was told of %d, the guest's of %d, want 1 and 0", u.session.closed, guests.closed)
	}
	if begin(at, &routing.Backend{Key: "another", Agent: b.Agent}) != nil {
		t.Error("got a visit of a tunnel that was taken away")
	}
	if begin(at, b) == nil {
		t.Error("got no visit in the place of one that has ended")
	}
	p.Close()
	p.visits = map[*Visit]struct{}{}
	if begin(at, b) != nil {
		t.Error("got a visit of an endpoint that is closed")
	}
}

// TestPrivateVisitsEnd checks that visits end with anything that they depend on, or when
// nothing has passed for the idle time.
func TestPrivateVisitsEnd(t *testing.T) {
	const idle = time.Minute
	for name, test := range map[string]struct {
		end  func(p *Private, v *Visit, guest, tunnel *counted, cancel context.CancelFunc)
		ends bool
	}{
		"its context":               {func(_ *Private, _ *Visit, _, _ *counted, cancel context.CancelFunc) { cancel() }, true},
		"the guest's session":       {func(_ *Private, _ *Visit, guest, _ *counted, _ context.CancelFunc) { close(guest.done) }, true},
		"the tunnel's session":      {func(_ *Private, _ *Visit, _, tunnel *counted, _ context.CancelFunc) { close(tunnel.done) }, true},
		"one side":                  {func(_ *Private, v *Visit, _, _ *counted, _ context.CancelFunc) { v.origin.Over(); v.guest.Over() }, true},
		"the endpoint":              {func(p *Private, _ *Visit, _, _ *counted, _ context.CancelFunc) { p.Close() }, true},
		"those that are picked":     {func(p *Private, _ *Visit, _, _ *counted, _ context.CancelFunc) { p.EndFlows(all) }, true},
		"those that are not picked": {func(p *Private, _ *Visit, _, _ *counted, _ context.CancelFunc) { p.EndFlows(none) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				u := newUnserved(t, Config{Flows: 2, Idle: idle})
				guest := &counted{done: make(chan struct{})}
				p := u.all.OpenPrivate(u.ep)
				v, err := p.Begin(&routing.Agent{Session: guest}, visitor.Guest{Addr: netip.MustParseAddrPort("192.0.2.1:1")}, u.ep.Pick()[0])
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				over := make(chan struct{})
				go func() {
					v.Wait(ctx, func() {})
					close(over)
				}()
				time.Sleep(idle / 2)
				v.guest.Take([][]byte{[]byte("a packet"), []byte("another")})
				time.Sleep(idle * 3 / 4)
				synctest.Wait()
				select {
				case <-over:
					t.Fatal("it is over though packets have passed")
				default:
				}
				test.end(p, v, guest, u.session, cancel)
				began := time.Now()
				<-over
				if took := time.Since(began); (took == 0) != test.ends || took > idle {
					t.Errorf("it was over %v later, want at once: %t, and else when it is idle", took, test.ends)
				}
				if in, out := v.Passed(); in != 15 || out != 0 {
					t.Errorf("got %d bytes in and %d out, want 15 and 0", in, out)
				}
				v.End()
			})
		})
	}
}

func all(*routing.Backend, netip.Addr) bool  { return true }
func none(*routing.Backend, netip.Addr) bool { return false }
