package agent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/agent/traffic"
	"adit/tunnel/link"
	"adit/tunnel/wire"
)

func TestBytesPassBothWaysWithHalfClose(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo)})
	s := r.mustVisit(tun.ID, wire.StreamRaw)
	data := make([]byte, 3<<20)
	rand.Read(data)
	var wg sync.WaitGroup
	wg.Go(func() {
		s.Write(data)
		s.CloseWrite()
	})
	got, err := io.ReadAll(s)
	wg.Wait()
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("got %d bytes, %v, want the %d sent", len(got), err, len(data))
	}
	eventually(t, "counters", func() bool {
		e := a.Endpoints()[0]
		return e.Connections == traffic.Connections{Total: 1} && e.Bytes == traffic.Bytes{In: int64(len(data)), Out: int64(len(data))}
	})
}

func TestOriginMaySpeakAfterTheVisitorHasEnded(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	port := service(t, func(c net.Conn) {
		sum := sha256.New()
		io.Copy(sum, c) // until the half-close
		fmt.Fprintf(c, "%x", sum.Sum(nil))
	})
	tun := mustCreate(t, a, definition.Tunnel{Type: "tls", LocalPort: port})
	s := r.mustVisit(tun.ID, wire.StreamRaw)
	data := bytes.Repeat([]byte("adit "), 1000)
	s.Write(data)
	s.CloseWrite()
	got, err := io.ReadAll(s)
	if want := fmt.Sprintf("%x", sha256.Sum256(data)); err != nil || string(got) != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestCutOriginIsACutStream(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	port := service(t, func(c net.Conn) {
		c.Write([]byte("some"))
		io.ReadFull(c, make([]byte, 1))
		c.(*net.TCPConn).SetLinger(0)
	})
	tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: port})
	s := r.mustVisit(tun.ID, wire.StreamRaw)
	io.ReadFull(s, make([]byte, 4))
	s.Write([]byte("x"))
	if _, err := io.ReadAll(s); err == nil {
		t.Error("got a clean end, want the visitor to learn that it was cut")
	}
}

func TestSlowVisitorStopsNobodyElse(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	endless := service(t, func(c net.Conn) {
		b := make([]byte, 64<<10)
		for {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	})
	slow := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: endless})
	quick := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo)})
	r.mustVisit(slow.ID, wire.StreamRaw) // never read
	eventually(t, "back-pressure reaches the origin", func() bool {
		before := a.Status().Bytes.Out
		time.Sleep(50 * time.Millisecond)
		return before > 0 && a.Status().Bytes.Out == before
	})
	s := r.mustVisit(quick.ID, wire.StreamRaw)
	for range 20 {
		s.Write([]byte("hello"))
		got := make([]byte, 5)
		if _, err := io.ReadFull(s, got); err != nil || string(got) != "hello" {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

func TestVisitorLearnsWhyThereIsNoOrigin(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{OriginTimeout: patience})
	a.origins.Lookup = func(context.Context, string, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	port := refusing(t)
	plain := service(t, func(c net.Conn) { c.Write([]byte("this is no TLS at all\r\n\r\n")) })
	for _, test := range []struct {
		name, want string
		spec       definition.Tunnel
	}{
		{"down", "nothing listens at the local address 127.0.0.1:" + strconv.Itoa(port), definition.Tunnel{Type: "http", LocalPort: port}},
		{"no such name", "does not resolve", definition.Tunnel{Type: "http", LocalPort: 80, LocalIP: "nowhere.invalid"}},
		{"no tls", "TLS", definition.Tunnel{Type: "http", LocalPort: plain, LocalScheme: "https"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tun := mustCreate(t, a, test.spec)
			_, err := r.visit(tun.ID, wire.StreamHTTP)
			var no *wire.OriginError
			if !errors.As(err, &no) || !strings.Contains(no.Reason, test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			eventually(t, "the relay is told", func() bool {
				r.mu.Lock()
				defer r.mu.Unlock()
				for _, e := range r.reports {
					if e.Key == tun.ID && strings.Contains(e.Message, test.want) {
						return true
					}
				}
				return false
			})
		})
	}
}

func TestRebindingNameIsRefusedAtTheDial(t *testing.T) {
	refused := errors.New("adit listens there itself")
	var on bool
	var mu sync.Mutex
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{Refuse: func(netip.Addr, int) error {
		mu.Lock()
		defer mu.Unlock()
		if on {
			return refused
		}
		return nil
	}})
	tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalIP: "localhost", LocalPort: service(t, echo)})
	mu.Lock()
	on = true
	mu.Unlock()
	_, err := r.visit(tun.ID, wire.StreamRaw)
	var no *wire.OriginError
	if !errors.As(err, &no) || !strings.Contains(no.Reason, refused.Error()) {
		t.Errorf("got %v, want the refusal", err)
	}
}

func TestStoppedTunnelCutsAndRefusesVisitors(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo)})
	s := r.mustVisit(tun.ID, wire.StreamRaw)
	s.Write([]byte("x"))
	io.ReadFull(s, make([]byte, 1))
	if _, err := a.StopTunnel(t.Context(), tun.ID); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %d bytes, want the stream cut", n)
	}
	if _, err := r.visit(tun.ID, wire.StreamRaw); err == nil {
		t.Error("a visitor was let in")
	}
}

func TestOriginGetsTheProxyHeader(t *testing.T) {
	for version, want := range map[string]string{
		"v1": "PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n",
		"v2": "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x07\xc0\x00\x02\x01\x12\x67\x01\xbb",
	} {
		t.Run(version, func(t *testing.T) {
			r := newFakeRelay(t)
			a, _ := configured(t, r, Config{})
			tun := mustCreate(t, a, definition.Tunnel{Type: "tcp", LocalPort: service(t, echo), ProxyProtocol: version})
			s := r.mustVisit(tun.ID, wire.StreamRaw)
			s.CloseWrite()
			got, err := io.ReadAll(s)
			if err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
			if c, _ := r.claim(tun.ID); !c.Unshared {
				t.Error("the relay was not asked for streams of one visitor")
			}
		})
	}
}

// refusing returns a port that refuses connections and that nobody else can
// come to listen at while the test runs: it is a connection's own.
func refusing(t *testing.T) int {
	t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", service(t, func(c net.Conn) { c.Read(make([]byte, 1)) })))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().(*net.TCPAddr).Port
}

// edge does HTTP over a visitor's stream, as the relay does.
func edge(t *testing.T, s link.Stream, method, target, body string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequest(method, "http://shop.relay.test"+target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Forwarded-For", "198.51.100.9")
	req.Header.Set("X-Forwarded-Proto", "https")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	if err := req.Write(s); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(s), req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(got)
}

func portOf(t *testing.T, s *httptest.Server) int {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func TestRequestsOfAStreamAreInspectedAndReplayed(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		t.Run(scheme, func(t *testing.T) {
			handler := http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
				body, _ := io.ReadAll(q.Body)
				w.Header().Set("Content-Type", "text/plain")
				w.WriteHeader(http.StatusAccepted)
				fmt.Fprintf(w, "%s %s %s %s", q.Method, q.URL, body, q.Header.Get("Authorization"))
			})
			server := httptest.NewUnstartedServer(handler)
			if scheme == "https" {
				server.StartTLS()
			} else {
				server.Start()
			}
			defer server.Close()
			r := newFakeRelay(t)
			a, _ := configured(t, r, Config{})
			tun := mustCreate(t, a, definition.Tunnel{Type: "https", LocalPort: portOf(t, server), LocalScheme: scheme})
			s := r.mustVisit(tun.ID, wire.StreamHTTP)
			if res, body := edge(t, s, "POST", "/a?b=c", "hello", "Authorization", "Bearer geheim"); res.StatusCode != http.StatusAccepted || body != "POST /a?b=c hello Bearer geheim" {
				t.Errorf("got %d %q", res.StatusCode, body)
			}
			edge(t, s, "GET", "/second", "") // on the same stream
			var list []inspect.Summary
			eventually(t, "both are listed", func() bool {
				list = a.Requests(inspect.Filter{})
				return len(list) == 2 && list[0].State == "done" && list[1].State == "done"
			})
			first := list[1]
			if first.Method != http.MethodPost || first.Path != "/a?b=c" || first.Status != 202 || first.Visitor != "198.51.100.9" || first.TunnelID != tun.ID || first.Host != "shop.relay.test" {
				t.Errorf("got %+v", first)
			}
			d, ok := a.Request(first.ID, false)
			if !ok || d.Request.Body.Text != "hello" || d.URL != "https://shop.relay.test/a?b=c" || strings.Contains(fmt.Sprint(d.Request.Headers, d.Curl), "geheim") {
				t.Errorf("got %+v, %v", d, ok)
			}
			again, err := a.Replay(t.Context(), first.ID, inspect.Edit{Method: "PUT", Path: "/again"})
			if err != nil {
				t.Fatal(err)
			}
			if again.ReplayOf != first.ID || again.Status != 202 || !strings.HasPrefix(again.Response.Body.Text, "PUT /again hello Bearer geheim") {
				t.Errorf("replay: got %+v %+v", again, again.Response)
			}
			_, err = a.Replay(t.Context(), "req_999", inspect.Edit{})
			wantCode(t, err, refusal.CodeNotFound, "")
			_, err = a.Replay(t.Context(), first.ID, inspect.Edit{Path: "no slash"})
			wantCode(t, err, refusal.CodeInvalidParameter, "")
		})
	}
}

func TestUninspectedTunnelLeavesNoTrace(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	no := mustCreate(t, a, definition.Tunnel{Type: "http", LocalPort: portOf(t, server), Inspect: new(false)})
	yes := mustCreate(t, a, definition.Tunnel{Type: "http", LocalPort: portOf(t, server)})
	edge(t, r.mustVisit(no.ID, wire.StreamHTTP), "GET", "/", "")
	edge(t, r.mustVisit(yes.ID, wire.StreamHTTP), "GET", "/", "")
	eventually(t, "one is listed", func() bool { return len(a.Requests(inspect.Filter{})) > 0 })
	if got := a.Requests(inspect.Filter{}); len(got) != 1 || got[0].TunnelID != yes.ID {
		t.Errorf("got %+v, want the inspected tunnel's alone", got)
	}
}

// udpVisitor sends one packet in a flow and waits for the answer.
func udpVisitor(t *testing.T, r *fakeRelay, key string, flow uint32, payload []byte) []byte {
	t.Helper()
	r.mu.Lock()
	number := r.numbers[key]
	r.mu.Unlock()
	s := r.session()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var parts wire.Reassembly
	buf := make([]byte, 64<<10)
	d := wire.Flow{Endpoint: number, Number: flow, Packet: 1, Payload: payload}
	if _, err := wire.SplitFlow(nil, d, s.MaxDatagram(), s.SendDatagram); err != nil {
		t.Fatal(err)
	}
	for {
		n, err := s.ReceiveDatagram(ctx, buf)
		if err != nil {
			t.Fatalf("no answer: %v", err)
		}
		got, err := wire.ParseFlow(buf[:n])
		if err != nil {
			t.Fatal(err)
		}
		if got.Number != flow {
			t.Fatalf("got flow %d, want %d", got.Number, flow)
		}
		if whole := parts.Add(got); whole != nil {
			return whole
		}
	}
}

func TestUDPPacketsPassWithFragments(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer conn.Close()
	wg.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			conn.WriteTo(append([]byte("re:"), buf[:n]...), from)
		}
	})
	port := conn.LocalAddr().(*net.UDPAddr).Port
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	for _, host := range []string{"127.0.0.1", "localhost"} {
		tun := mustCreate(t, a, definition.Tunnel{Type: "udp", LocalPort: port, LocalIP: host})
		for i, size := range []int{0, 5, 1200, 20000} {
			payload := bytes.Repeat([]byte{byte(i)}, size)
			got := udpVisitor(t, r, tun.ID, uint32(i+1), payload)
			if want := append([]byte("re:"), payload...); !bytes.Equal(got, want) {
				t.Errorf("%s, %d bytes: got %d, want %d", host, size, len(got), len(want))
			}
		}
		if e := a.Endpoints()[len(a.Endpoints())-1]; e.Connections.Total != 4 || e.Bytes.In != 21205 || e.Bytes.Out != 21205+12 {
			t.Errorf("got %+v", e)
		}
		if _, err := a.StopTunnel(t.Context(), tun.ID); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "flows are listed as ended", func() bool {
		list := a.Requests(inspect.Filter{Kind: inspect.KindFlow})
		for _, s := range list {
			if s.State != "done" {
				return false
			}
		}
		return len(list) == 8
	})
}
