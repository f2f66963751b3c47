package link

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/simnet"
)

// dialDetourPair makes a session over DTLS that may take a detour.
func dialDetourPair(t *testing.T, s *simulated) (client, server Session) {
	t.Helper()
	s.dial.Detour = true
	return dialDTLSPair(t, s.listener, s.dial)
}

// awaitTransport waits, in virtual time, until a session is on a transport.
func awaitTransport(t *testing.T, s Session, want Transport, within time.Duration) time.Duration {
	t.Helper()
	began := time.Now()
	for s.Transport() != want {
		if time.Since(began) > within {
			t.Fatalf("still on %s after %v, want %s; session ended: %v", s.Transport(), within, want, s.Err())
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(began)
}

// TestTransferSurvivesCutUDP cuts UDP off in the middle of a transfer, and opens
// it again.
func TestTransferSurvivesCutUDP(t *testing.T) {
	for _, rtt := range []time.Duration{2 * time.Millisecond, 50 * time.Millisecond, 200 * time.Millisecond} {
		for _, up := range []bool{false, true} {
			t.Run(rtt.String()+map[bool]string{false: " down", true: " up"}[up], func(t *testing.T) {
				inBubble(t, simnet.Path{Delay: rtt / 2, Rate: 1 << 20}, func(t *testing.T, s *simulated) {
					client, server := dialDetourPair(t, s)
					defer client.Close("over")
					from, to := server, client
					if up {
						from, to = client, server
					}
					stall := download(t, from, to, 8<<20, 2, func(i int) {
						if i == 0 {
							s.block(true)
							return
						}
						if client.Transport() != TLS || !client.Stats().Detour || server.Transport() != TLS {
							t.Errorf("on %s and %s while UDP is cut, want tls", client.Transport(), server.Transport())
						}
						s.block(false)
					})
					if stall > 5*time.Second {
						t.Errorf("stalled for %v, want at most 5s", stall)
					}
					awaitTransport(t, client, DTLS, time.Minute)
					awaitTransport(t, server, DTLS, 5*time.Second)
					testEcho(t, pair{client: client, server: server})
				})
			})
		}
	}
}

// TestReturnFromDetourBreaksNothing opens UDP again while a transfer is under
// way on the detour, several times.
func TestReturnFromDetourBreaksNothing(t *testing.T) {
	const rate = 256 << 10
	inBubble(t, simnet.Path{Delay: 10 * time.Millisecond, Rate: rate}, func(t *testing.T, s *simulated) {
		s.dial.DialContext = slowly(s.dial.DialContext, rate)
		client, server := dialDetourPair(t, s)
		defer client.Close("over")
		var seen []Transport
		stall := download(t, server, client, 100*rate, 4, func(i int) {
			seen = append(seen, client.Transport())
			s.block(i%2 == 0)
		})
		if stall > 5*time.Second {
			t.Errorf("stalled for %v, want at most 5s", stall)
		}
		for i, got := range seen {
			if want := map[bool]Transport{true: DTLS, false: TLS}[i%2 == 0]; got != want {
				t.Errorf("before change %d on %s, want %s", i, got, want)
			}
		}
	})
}

// slowly makes connections as slow as the network beside them: what arrives is
// read no faster than at rate bytes a second.
func slowly(dial func(context.Context, string, string) (net.Conn, error), rate int) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return slowConn{conn, rate}, nil
	}
}

type slowConn struct {
	net.Conn
	rate int
}

func (c slowConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	time.Sleep(time.Duration(n) * time.Second / time.Duration(c.rate))
	return n, err
}

// TestIdleSessionTakesDetour cuts UDP off while nothing is said.
func TestIdleSessionTakesDetour(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		client, server := dialDetourPair(t, s)
		defer client.Close("over")
		changes := client.(*dtlsSession).TransportChanged()
		time.Sleep(5 * time.Second)
		s.block(true)
		took := awaitTransport(t, client, TLS, 20*time.Second)
		<-changes
		time.Sleep(10 * time.Minute) // UDP is tried all the time
		if client.Transport() != TLS || client.Err() != nil || server.Err() != nil {
			t.Errorf("after ten minutes on %s, ended: %v, %v", client.Transport(), client.Err(), server.Err())
		}
		s.block(false)
		back := awaitTransport(t, client, DTLS, time.Minute)
		<-changes
		t.Logf("on the detour after %v, back after %v", took, back)
		testEcho(t, pair{client: client, server: server})
	})
}

// TestDetourIsTakenAgain breaks the detour's connection, as a change of network
// does, while UDP stays cut.
func TestDetourIsTakenAgain(t *testing.T) {
	for name, end := range map[string]func(conn net.Conn, cut *atomic.Bool){
		"reset":  func(conn net.Conn, _ *atomic.Bool) { conn.Close() },
		"silent": func(_ net.Conn, cut *atomic.Bool) { cut.Store(true) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, simnet.Path{Delay: 10 * time.Millisecond, Rate: 1 << 20}, func(t *testing.T, s *simulated) {
				var last net.Conn
				var cut *atomic.Bool
				dial := s.dial.DialContext
				s.dial.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
					conn, err := dial(ctx, network, addr)
					if err != nil {
						return nil, err
					}
					last, cut = conn, new(atomic.Bool)
					return slowConn{newHoledConn(conn, cut), 1 << 20}, nil
				}
				client, server := dialDetourPair(t, s)
				defer client.Close("over")
				stall := download(t, server, client, 16<<20, 3, func(i int) {
					if i == 0 {
						s.block(true)
						return
					}
					end(last, cut)
				})
				if stall > 5*time.Second {
					t.Errorf("stalled for %v, want at most 5s", stall)
				}
			})
		})
	}
}

// TestNoDetourWhereTCPIsCutToo: a session that no way is left for ends in time.
func TestNoDetourWhereTCPIsCutToo(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		s.dial.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		client, server := dialDetourPair(t, s)
		stream, _ := connect(t, client, server)
		s.block(true)
		stream.Write([]byte("into the void"))
		cut := time.Now()
		<-client.Done()
		if took := time.Since(cut); took > 3500*time.Millisecond || !errors.Is(client.Err(), ErrTimeout) {
			t.Errorf("ended after %v with %v, want ErrTimeout within 3s", took, client.Err())
		}
		client.Close("over")
	})
}

// TestDetourIsNotTakenForASessionThatIsGone dials a relay that knows nothing of
// the session, as after a restart.
func TestDetourIsNotTakenForASessionThatIsGone(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		client, server := dialDetourPair(t, s)
		stream, _ := connect(t, client, server)
		s.block(true)
		server.Close("the relay restarts") // which the agent cannot hear
		stream.Write([]byte("who is there?"))
		cut := time.Now()
		<-client.Done()
		if took := time.Since(cut); took > 3500*time.Millisecond {
			t.Errorf("ended after %v with %v, want within 3s", took, client.Err())
		}
		client.Close("over")
	})
}

// TestASessionThatIsGoneIsToldOf wakes an agent whose relay has ended the session
// meanwhile, as it does while the agent's machine sleeps.
func TestASessionThatIsGoneIsToldOf(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		client, server := dialDetourPair(t, s)
		time.Sleep(time.Minute)
		s.block(true)
		server.Close("the agent is silent") // which it cannot hear
		s.block(false)
		woken := time.Now()
		client.(*dtlsSession).Probe()
		<-client.Done()
		if took := time.Since(woken); took > 100*time.Millisecond || !errors.Is(client.Err(), ErrForgotten) {
			t.Errorf("ended after %v with %v, want two ways through the network and %v", took, client.Err(), ErrForgotten)
		}
		client.Close("over")
	})
}

// TestDetourGoesThroughTheProxy names a proxy, which alone can reach the relay.
func TestDetourGoesThroughTheProxy(t *testing.T) {
	inBubble(t, simnet.Path{Delay: 20 * time.Millisecond}, func(t *testing.T, s *simulated) {
		direct := s.dial.DialContext
		s.dial.Proxy = func(string) (*url.URL, error) { return url.Parse("http://proxy.example:3128") }
		var asked atomic.Int64
		var tunnels sync.WaitGroup
		defer tunnels.Wait()
		s.dial.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if addr != "proxy.example:3128" {
				return nil, errors.New("no route")
			}
			near, far := net.Pipe()
			tunnels.Go(func() {
				defer far.Close()
				request := make([]byte, 4096)
				n, err := far.Read(request)
				if err != nil || !strings.HasPrefix(string(request[:n]), "CONNECT 10.0.0.1:4433 ") {
					t.Errorf("the proxy was asked %q, %v", request[:n], err)
					return
				}
				asked.Add(1)
				relay, err := direct(context.Background(), "tcp", "10.0.0.1:4433")
				if err != nil {
					return
				}
				io.WriteString(far, "HTTP/1.1 200 OK\r\n\r\n")
				tunnels.Go(func() { io.Copy(relay, far); relay.Close() })
				io.Copy(far, relay)
			})
			return near, nil
		}
		client, server := dialDetourPair(t, s)
		defer client.Close("over")
		s.block(true)
		awaitTransport(t, client, TLS, 20*time.Second)
		testEcho(t, pair{client: client, server: server})
		if asked.Load() == 0 {
			t.Error("the proxy was not asked")
		}
		client.Close("over")
	})
}

func TestSessionOverADetour(t *testing.T) {
	testSession(t, synctest.Test, func(t *testing.T) pair {
		tcp := newPipeListener()
		s := newSimulated(t, simnet.Path{Delay: 10 * time.Millisecond}, ListenConfig{TCP: tcp})
		var cut atomic.Bool
		s.dial.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := tcp.dial(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return newHoledConn(conn, &cut), nil
		}
		client, server := dialDetourPair(t, s)
		s.block(true)
		client.(*dtlsSession).Probe()
		awaitTransport(t, client, TLS, 20*time.Second)
		awaitTransport(t, server, TLS, 20*time.Second)
		return pair{client, server, func() { cut.Store(true) }, s.close}
	})
}

// TestTransferGoesOnInSmallDatagrams lets only small datagrams pass from the
// middle of a transfer on; in the end so small ones that challenges alone pass,
// which the side that sends finds out.
func TestTransferGoesOnInSmallDatagrams(t *testing.T) {
	for _, c := range []struct {
		name string
		mtu  int
		up   bool
		want Transport
	}{{"down", 600, false, DTLS}, {"up", 600, true, DTLS}, {"tiny, up", 200, true, TLS}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, simnet.Path{Delay: 10 * time.Millisecond, Rate: 1 << 20}, func(t *testing.T, s *simulated) {
				client, server := dialDetourPair(t, s)
				defer client.Close("over")
				from, to := server, client
				if c.up {
					from, to = client, server
				}
				stall := download(t, from, to, 8<<20, 1, func(int) {
					for _, l := range []*simnet.Link{s.there, s.back} {
						l.Change(func(p *simnet.Path) { p.MTU = c.mtu })
					}
				})
				if stall > 5*time.Second {
					t.Errorf("stalled for %v, want at most 5s", stall)
				}
				if client.Transport() != c.want {
					t.Errorf("at the end over %s, want %s", client.Transport(), c.want)
				}
			})
		})
	}
}
