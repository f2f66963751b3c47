package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// pipeListener is a net.Listener whose connections are net.Pipes, for virtual time.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	a, b := net.Pipe()
	select {
	case l.conns <- b:
		return a, nil
	case <-l.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4433} }

// inBubble runs a test of dialling: both transports of one relay, in virtual time.
func inBubble(t *testing.T, path simnet.Path, f func(t *testing.T, s *simulated)) {
	synctest.Test(t, func(t *testing.T) {
		tcp := newPipeListener()
		s := newSimulated(t, path, ListenConfig{TCP: tcp})
		defer s.close()
		s.dial.DialContext = tcp.dial
		f(t, s)
	})
}

// dialed dials and gives the session and the time that it took.
func dialed(t *testing.T, s *simulated, cfg DialConfig) (Session, time.Duration) {
	t.Helper()
	start := time.Now()
	session, err := Dial(t.Context(), cfg)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	took := time.Since(start)
	server, err := s.listener.Accept(t.Context())
	if err != nil {
		t.Fatalf("accept: %v", err)
	}
	testEcho(t, pair{client: session, server: server})
	return session, took
}

func TestAutoTakesDTLS(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 50 * time.Millisecond}, func(t *testing.T, s *simulated) {
		s.dial.DialContext = func(context.Context, string, string) (net.Conn, error) {
			t.Error("TLS was tried too")
			return nil, errors.New("no")
		}
		session, _ := dialed(t, s, s.dial)
		defer session.Close("over")
		if session.Transport() != DTLS {
			t.Errorf("got %s, want dtls", session.Transport())
		}
	})
}

func TestAutoFallsBackWhereUDPIsBlocked(t *testing.T) {
	inBubble(t, simnet.Path{Blocked: true}, func(t *testing.T, s *simulated) {
		session, took := dialed(t, s, s.dial)
		defer session.Close("over")
		if session.Transport() != TLS || took > 2*time.Second {
			t.Errorf("got %s after %v, want tls within 2s", session.Transport(), took)
		}
		// UDP is opened: the agent, dialling again, is back on DTLS.
		s.block(false)
		s.dial.Transport = DTLS
		again, took := dialed(t, s, s.dial)
		defer again.Close("over")
		if again.Transport() != DTLS || took > 2*time.Second {
			t.Errorf("got %s after %v, want dtls within 2s", again.Transport(), took)
		}
	})
}

func TestAutoFallsBackWhereOnlySmallDatagramsPass(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 10 * time.Millisecond, MTU: 300}, func(t *testing.T, s *simulated) {
		session, took := dialed(t, s, s.dial)
		defer session.Close("over")
		if took > 2*time.Second {
			t.Errorf("got %s after %v, want a session within 2s", session.Transport(), took)
		}
	})
}

func TestDTLSWorksWhereDatagramsAreSmall(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 10 * time.Millisecond, MTU: 1232}, func(t *testing.T, s *simulated) {
		s.dial.Transport = DTLS
		session, _ := dialed(t, s, s.dial)
		session.Close("over")
	})
}

func TestDialEndsWhereNothingAnswers(t *testing.T) {
	inBubble(t, simnet.Path{Blocked: true}, func(t *testing.T, s *simulated) {
		s.dial.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if session, err := Dial(ctx, s.dial); err == nil {
			session.Close("")
			t.Error("dialled nobody")
		}
	})
}

// fixedResolver gives what a name stands for now.
type fixedResolver struct {
	addrs atomic.Pointer[[]netip.Addr]
	calls atomic.Int64
}

func (r *fixedResolver) set(addrs ...string) {
	var list []netip.Addr
	for _, a := range addrs {
		list = append(list, netip.MustParseAddr(a))
	}
	r.addrs.Store(&list)
}

func (r *fixedResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r.calls.Add(1)
	return *r.addrs.Load(), nil
}

func TestDialTriesEveryAddressAndAsksAgain(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		resolver := new(fixedResolver)
		s.dial.Relay, s.dial.Resolver, s.dial.Transport = "relay.example:4433", resolver, DTLS
		for _, addrs := range [][]string{
			{"10.0.0.1"},
			{"10.0.0.7", "10.0.0.8", "10.0.0.1"},
			{"2001:db8::7", "10.0.0.8", "10.0.0.1"},
		} {
			resolver.set(addrs...)
			before := resolver.calls.Load()
			session, took := dialed(t, s, s.dial)
			if took > 2*time.Second || resolver.calls.Load() == before {
				t.Errorf("%v: took %v and %d look-ups, want within 2s and anew", addrs, took, resolver.calls.Load()-before)
			}
			session.Close("over")
		}
	})
}

func TestRefusedUDPIsNoticed(t *testing.T) {
	swallowing, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer swallowing.Close()
	if addr := netip.MustParseAddrPort(swallowing.LocalAddr().String()); refusesUDP(t.Context(), addr) {
		t.Errorf("%v, which is open, is taken to refuse", addr)
	}
	refusing, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := netip.MustParseAddrPort(refusing.LocalAddr().String())
	refusing.Close()
	if !refusesUDP(t.Context(), addr) {
		t.Errorf("%v, which is closed, is not noticed to refuse", addr)
	}
}

// A network that lets nothing out but the web, or a proxy that connects to no other
// port, is passed by the visitors' port.
func TestWebPortIsTheWayOut(t *testing.T) {
	for name, own := range map[string]func(context.Context) (net.Conn, error){
		"silent":  func(ctx context.Context) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
		"refused": func(context.Context) (net.Conn, error) { return nil, syscall.ECONNREFUSED },
		"taken and not answered": func(context.Context) (net.Conn, error) {
			conn, other := net.Pipe()
			go io.Copy(io.Discard, other)
			return conn, nil
		},
	} {
		most := tlsDelay + webDelay + time.Second
		if name == "taken and not answered" { // as by a relay that is busy, which is asked later
			most += webDelay
		}
		for _, transport := range []Transport{TLS, Auto} {
			t.Run(fmt.Sprintf("%s, over %q", name, transport), func(t *testing.T) {
				inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
					open := s.dial.DialContext
					s.dial.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
						if _, port, _ := net.SplitHostPort(addr); port != WebPort {
							return own(ctx)
						}
						return open(ctx, network, addr)
					}
					s.block(true) // UDP
					s.dial.Transport = transport
					session, took := dialed(t, s, s.dial)
					defer session.Close("over")
					if session.Transport() != TLS || took > most {
						t.Errorf("on %s after %v", session.Transport(), took)
					}
				})
			})
		}
	}
}

// Whoever has that port is not taken for the relay: what the relay's own port showed is
// what is told.
func TestStrangerAtTheWebPortIsNotTheRelay(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		open := s.dial.DialContext
		s.dial.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if _, port, _ := net.SplitHostPort(addr); port != WebPort {
				return nil, syscall.ECONNREFUSED
			}
			return open(ctx, network, addr)
		}
		s.dial.Transport = TLS
		s.dial.Fingerprint[0] ^= 1
		session, err := Dial(t.Context(), s.dial)
		if session != nil || !errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, ErrUntrusted) || errors.Is(err, ErrNoRelay) {
			t.Errorf("got %v, %v", session, err)
		}
	})
}

// A relay that is down is tried again soon, whoever does not answer at the other port.
func TestSilentWebPortDelaysLittle(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		s.dial.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if _, port, _ := net.SplitHostPort(addr); port == WebPort {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return nil, syscall.ECONNREFUSED
		}
		s.dial.Transport = TLS
		begin := time.Now()
		session, err := Dial(t.Context(), s.dial)
		if took := time.Since(begin); session != nil || !errors.Is(err, syscall.ECONNREFUSED) || took > webTime {
			t.Errorf("got %v, %v after %v", session, err, took)
		}
	})
}

// lastKnown has the addresses that a name had last, and no answer.
type lastKnown struct{ fixedResolver }

func (r *lastKnown) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	addrs, _ := r.fixedResolver.LookupNetIP(ctx, network, host)
	return addrs, &net.DNSError{Err: "server misbehaving", Name: host}
}

func TestRelayIsDialledWhereItsNameLedLast(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		resolver := new(lastKnown)
		resolver.set("10.0.0.1")
		s.dial.Relay, s.dial.Resolver = "relay.example:4433", resolver
		transports := []Transport{DTLS, TLS, Auto}
		for _, s.dial.Transport = range transports {
			session, _ := dialed(t, s, s.dial)
			session.Close("over")
		}
		// Nobody is there any more: that the name was not found is a part of why.
		resolver.set("10.0.0.7")
		s.dial.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no route") }
		for _, s.dial.Transport = range transports {
			session, err := Dial(t.Context(), s.dial)
			var dns *net.DNSError
			if session != nil || !errors.As(err, &dns) || dns.Name != "relay.example" {
				t.Errorf("%s: got %v, %v", s.dial.Transport, session, err)
			}
		}
	})
}

func TestLookupMixesFamilies(t *testing.T) {
	resolver := new(fixedResolver)
	resolver.set("192.0.2.1", "192.0.2.2", "::ffff:192.0.2.3", "2001:db8::1")
	got, unsure, err := addresses(t.Context(), &DialConfig{Relay: "relay.example:443", Resolver: resolver})
	if err != nil || unsure != nil {
		t.Fatal(err, unsure)
	}
	want := []string{"[2001:db8::1]:443", "192.0.2.1:443", "192.0.2.2:443", "192.0.2.3:443"}
	for i, addr := range got {
		if i >= len(want) || addr.String() != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestUDPCutInTransferIsReplacedByTLS(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond, Rate: 5 << 20}, func(t *testing.T, s *simulated) {
		session, server := dialDTLSPair(t, s.listener, s.dial)
		stream, in := connect(t, session, server)
		go io.Copy(io.Discard, in)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, err := stream.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}()
		time.Sleep(2 * time.Second)
		s.block(true)
		cut := time.Now()
		<-session.Done()
		noticed := time.Since(cut)
		again, _ := dialed(t, s, s.dial)
		defer again.Close("over")
		if back := time.Since(cut); again.Transport() != TLS || noticed > 3500*time.Millisecond || back > 5*time.Second {
			t.Errorf("noticed after %v, on %s after %v; want on tls within 5s", noticed, again.Transport(), back)
		}
		<-done
		session.Close("over")
	})
}

func TestIdleDeathIsNoticed(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		s.dial.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no route") // or the session would go on over TCP
		}
		session, _ := dialed(t, s, s.dial)
		time.Sleep(time.Hour)
		st := session.Stats()
		if session.Err() != nil || time.Since(st.LastReceived) > st.KeepAlive {
			t.Errorf("after an idle hour: %v, heard %v ago; want alive and heard within %v", session.Err(), time.Since(st.LastReceived), st.KeepAlive)
		}
		s.block(true)
		cut := time.Now()
		<-session.Done()
		if took := time.Since(cut); took > 20*time.Second || !errors.Is(session.Err(), ErrTimeout) {
			t.Errorf("ended after %v with %v, want ErrTimeout within 20s", took, session.Err())
		}
		session.Close("over")
	})
}
