package relay

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/allowance"
	"adit/internal/crowd"
	"adit/tunnel/link"
	"adit/tunnel/relay/config"
	"adit/tunnel/wire"
)

func TestStrangersAreCountedByAddress(t *testing.T) {
	at := func(ip string) net.Addr { return &net.UDPAddr{IP: net.ParseIP(ip), Port: 7} }
	s := strangers{crowd: crowd.Crowd{PerBlock: 2}}
	enter := func(ip string, want bool) func() {
		t.Helper()
		leave, ok := s.enter(at(ip), func() { t.Errorf("%s was cut", ip) })
		if ok != want {
			t.Errorf("%s: let in: %v, want %v", ip, ok, want)
		}
		return leave
	}
	first := enter("2001:db8::1", true)
	enter("2001:db8::2:0:0:1", true)
	enter("2001:db8::3", false)() // who was not let in leaves no place
	enter("2001:db8::3", false)
	other := enter("2001:db8:0:1::1", true)
	enter("192.0.2.1", true)
	first()
	first() // as once
	again := enter("2001:db8::4", true)
	enter("2001:db8::5", false)
	if got := s.turnedAway.Load(); got != 3 {
		t.Errorf("%d were turned away, want 3", got)
	}
	if got := s.open(); got != 4 {
		t.Errorf("%d are open, want 4", got)
	}
	again()
	other()
	if got := s.open(); got != 2 {
		t.Errorf("%d are open at the end, want 2", got)
	}
}

// TestOneAddressTakesOnlySomePlaces opens sessions that never identify themselves, as
// anybody can who has seen the address in a token.
func TestOneAddressTakesOnlySomePlaces(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.UnnamedPerAddress = 3
	r := startRelay(t, cfg)
	token := r.client(t, "shop")
	before := connect(t, token, "before")
	dial := func(kind link.Transport) link.Session {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		s, err := link.Dial(ctx, link.DialConfig{Relay: token.Relay, Fingerprint: token.Fingerprint, Transport: kind})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close("test over") })
		return s
	}
	var held []link.Session
	for _, kind := range []link.Transport{link.DTLS, link.TLS, link.DTLS} {
		held = append(held, dial(kind))
	}
	eventually(t, "the strangers are counted", func() bool { return r.strangers.open() == 3 })
	for _, kind := range []link.Transport{link.DTLS, link.TLS} {
		extra := dial(kind)
		select {
		case <-extra.Done():
			if text := extra.Err().Error(); !strings.Contains(text, "from this address") {
				t.Errorf("%s: ended with %q, want the reason", kind, text)
			}
		case <-time.After(patience):
			t.Fatalf("%s: one too many was let in", kind)
		}
	}
	// Who dials again on a machine that stands still is turned away again.
	if got := r.strangers.turnedAway.Load(); got < 2 {
		t.Errorf("%d were turned away, want 2", got)
	}
	before.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "") // who is known is not touched
	for _, s := range held {
		s.Close("gone")
	}
	eventually(t, "they have left", func() bool { return r.strangers.open() == 0 })
	connect(t, token, "after")
}

// TestStrangersOpenFewStreams checks the limit, as each stream whose request head is
// incomplete holds memory of the relay.
func TestStrangersOpenFewStreams(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	token := r.client(t, "shop")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s, err := link.Dial(ctx, link.DialConfig{Relay: token.Relay, Fingerprint: token.Fingerprint, Transport: link.TLS})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close("test over")
	const many = 20
	var refused atomic.Int32
	var group sync.WaitGroup
	for range many {
		st, err := s.OpenStream(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Write([]byte("POST")); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			if _, err := st.Read(make([]byte, 1)); err != nil {
				refused.Add(1)
			}
		})
	}
	eventually(t, "most are refused while the session lasts", func() bool { return refused.Load() >= many-strangerStreams })
	if err := s.Err(); err != nil {
		t.Errorf("the session had ended: %v", err)
	}
	s.Close("test over")
	group.Wait()
}

// TestAnOfficeComesBackAtOnce makes more agents behind one address connect at the same
// time than may be unidentified. Each of them gets in, as those that are turned away try
// again.
func TestAnOfficeComesBackAtOnce(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.UnnamedPerAddress = 2
	r := startRelay(t, cfg)
	token := r.client(t, "shop")
	var group sync.WaitGroup
	for _, instance := range []string{"i1", "i2", "i3", "i4", "i5", "i6", "i7", "i8"} {
		group.Go(func() {
			for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
				_, err := dialAgent(t, token, instance)
				if err == nil {
					return
				}
				if time.Now().After(end) {
					t.Errorf("%s was never let in: %v", instance, err)
					return
				}
			}
		})
	}
	group.Wait()
	if got := len(r.roster.All()); got != 8 {
		t.Errorf("%d agents are connected, want 8", got)
	}
	eventually(t, "nobody is left unnamed", func() bool { return r.strangers.open() == 0 })
}

func TestAFullRelaySaysSo(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.Sessions = 2
	r := startRelay(t, cfg)
	token := r.client(t, "shop")
	connect(t, token, "i1")
	connect(t, token, "i2")
	_, err := dialAgent(t, token, "i3")
	if p := problem(t, err, wire.CodeLimit); !strings.Contains(p.Message, "too many agents") {
		t.Errorf("it says %q", p.Message)
	}
	connect(t, token, "i1") // an agent that comes anew takes the place that it had
}

func TestALimitOfZeroIsTheDefault(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits = config.Limits{}
	r := startRelay(t, cfg)
	want := config.Defaults().Limits
	want.Connections = visitorsFor(allowance.Memory(), allowance.Files())
	if r.cfg.Limits != want {
		t.Errorf("got %+v, want %+v", r.cfg.Limits, want)
	}
	connect(t, r.client(t, "shop"), "i1").mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
}

// TestStrangersFromManyAddressesKeepNobodyOut fills all places with strangers from many
// addresses. An agent still gets in, and the stranger that has waited longest has to go.
func TestStrangersFromManyAddressesKeepNobodyOut(t *testing.T) {
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), strangerGrace: 1})
	token := r.client(t, "shop")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	first, err := link.Dial(ctx, link.DialConfig{Relay: token.Relay, Fingerprint: token.Fingerprint, Transport: link.TLS})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close("test over")
	eventually(t, "the stranger is counted", func() bool { return r.strangers.open() == 1 })
	for i := range maxStrangers - 1 {
		r.strangers.enter(&net.UDPAddr{IP: net.IPv4(10, 1, byte(i>>8), byte(i)), Port: 7}, func() {})
	}
	a := connect(t, token, "i1")
	select {
	case <-first.Done():
		if text := first.Err().Error(); !strings.Contains(text, "too many") {
			t.Errorf("the stranger was told %q", text)
		}
	case <-time.After(patience):
		t.Error("the stranger kept its place")
	}
	a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, "")
	connect(t, token, "i2")
}
