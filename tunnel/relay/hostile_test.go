package relay

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"adit/tunnel/wire"
)

// unharmed asks as another visitor, by each version of HTTP.
func (s *site) unharmed(t *testing.T) {
	t.Helper()
	if err := s.agent.session.Err(); err != nil {
		t.Fatalf("the agent's session has ended: %v", err)
	}
	for name, visitor := range map[string]*http.Client{"HTTP/2": s.visitor, "HTTP/3": s.visitor3(t)} {
		if status, body := get(t, visitor, s.https); status != 200 || body != "hello" {
			t.Errorf("another visitor by %s: status %d, %q", name, status, body)
		}
	}
}

func request(path string) []hpack.HeaderField {
	return []hpack.HeaderField{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: path}, {Name: ":authority", Value: "shop.relay.test"}}
}

// TestHTTP2FloodsAreEnded floods a connection with things that cost a visitor little.
// Each flood ends its connection, or costs no more than its answers do, and no other
// visitor is harmed.
func TestHTTP2FloodsAreEnded(t *testing.T) {
	var inside, most atomic.Int64
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/flood" {
			n := inside.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			defer inside.Add(-1)
			<-r.Context().Done()
			return
		}
		if r.URL.Path == "/body" {
			io.Copy(io.Discard, r.Body)
		}
		io.WriteString(w, "hello")
	}))
	for name, flood := range map[string]struct {
		send func(c *http2Conn, i uint32) error
		ends bool // the connection must be ended
	}{
		"ping":     {func(c *http2Conn, i uint32) error { return c.framer.WritePing(false, [8]byte{byte(i)}) }, false},
		"settings": {func(c *http2Conn, _ uint32) error { return c.framer.WriteSettings() }, false},
		"rapid reset": {func(c *http2Conn, i uint32) error {
			c.headers(2*i+1, true, request("/flood")...)
			return c.framer.WriteRSTStream(2*i+1, http2.ErrCodeCancel)
		}, false},
		"window update": {func(c *http2Conn, _ uint32) error { return c.framer.WriteWindowUpdate(0, 1) }, false},
		"priority": {func(c *http2Conn, i uint32) error {
			return c.framer.WritePriority(2*i+1, http2.PriorityParam{Weight: 1})
		}, false},
		"continuation": {func(c *http2Conn, i uint32) error {
			if i == 0 {
				return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.encode(request("/")...)})
			}
			return c.framer.WriteContinuation(1, false, c.encode(hpack.HeaderField{Name: "x-" + strconv.Itoa(int(i)), Value: strings.Repeat("y", 200)}))
		}, true},
		"empty continuation": {func(c *http2Conn, i uint32) error {
			if i == 0 {
				return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.encode(request("/")...)})
			}
			return c.framer.WriteContinuation(1, false, nil)
		}, true},
		"empty data": {func(c *http2Conn, i uint32) error {
			if i == 0 {
				return c.headers(1, false, request("/body")...)
			}
			return c.framer.WriteData(1, false, nil)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := heap()
			c := dialHTTP2(t, s)
			defer c.Close()
			var over sync.WaitGroup
			defer over.Wait()
			defer c.Close()
			many := 20_000
			if name == "rapid reset" {
				many = 3000 // each is a request for the origin
			}
			// What ping and settings are answered with is not read.
			if name != "ping" && name != "settings" {
				over.Go(func() { io.Copy(io.Discard, c.Conn) })
			}
			var err error
			for i := range uint32(many) {
				if err = flood.send(c, i); err != nil {
					break
				}
			}
			if flood.ends && err == nil {
				// What was sent last may still be on its way.
				eventually(t, "the connection is ended", func() bool {
					return c.framer.WritePing(false, [8]byte{1}) != nil
				})
			}
			if grown := heap() - before; grown > 64<<20 {
				t.Errorf("the flood holds %d MiB", grown>>20)
			}
			s.unharmed(t)
		})
	}
	if n := most.Load(); n > 250 {
		t.Errorf("%d requests of one connection were with the origin at once, want at most 250", n)
	}
	eventually(t, "no request of a flood is left with the origin", func() bool { return inside.Load() == 0 })
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestHTTP2Frames checks the edge against rules of RFC 9113 that distinguish a sound
// server from one that trusts its peer.
func TestHTTP2Frames(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	raw := func(kind http2.FrameType, flags http2.Flags, stream uint32, payload []byte) func(*http2Conn) {
		return func(c *http2Conn) { c.framer.WriteRawFrame(kind, flags, stream, payload) }
	}
	open := func(more func(*http2Conn)) func(*http2Conn) {
		return func(c *http2Conn) { c.headers(1, false, request("/")...); more(c) }
	}
	for name, c := range map[string]struct {
		send func(*http2Conn)
		want string // what the answer to stream 1 begins with, or |-separated
	}{
		"a request":                            {func(c *http2Conn) { c.headers(1, true, request("/")...) }, "200"},
		"4.1 unknown frame is ignored":         {func(c *http2Conn) { raw(0x77, 0, 0, []byte("x"))(c); c.headers(1, true, request("/")...) }, "200"},
		"4.2 frame too large":                  {raw(http2.FrameData, 0, 1, make([]byte, 2<<20)), "goaway FRAME_SIZE_ERROR|closed"},
		"4.3 field block that does not decode": {raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}), "goaway COMPRESSION_ERROR|closed"},
		"5.1 data on an idle stream":           {raw(http2.FrameData, 0, 1, []byte("x")), "goaway PROTOCOL_ERROR|goaway STREAM_CLOSED|closed"},
		"5.1 reset of an idle stream":          {raw(http2.FrameRSTStream, 0, 1, make([]byte, 4)), "goaway PROTOCOL_ERROR|closed"},
		"5.1.1 even stream":                    {func(c *http2Conn) { c.headers(2, true, request("/")...) }, "goaway PROTOCOL_ERROR|closed"},
		"5.1.1 stream number that falls":       {func(c *http2Conn) { c.headers(5, true, request("/")...); c.headers(3, true, request("/")...) }, "goaway|closed"},
		"6.1 data on stream 0":                 {raw(http2.FrameData, 0, 0, []byte("x")), "goaway PROTOCOL_ERROR|closed"},
		"6.1 padding longer than the frame":    {open(raw(http2.FrameData, http2.FlagDataPadded, 1, []byte{200, 1})), "goaway PROTOCOL_ERROR|closed"},
		"6.2 headers on stream 0":              {raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders, 0, []byte{0x82}), "goaway PROTOCOL_ERROR|closed"},
		"6.2 headers broken off by another": {func(c *http2Conn) {
			raw(http2.FrameHeaders, 0, 1, c.encode(request("/")...))(c)
			c.framer.WritePing(false, [8]byte{})
		}, "goaway PROTOCOL_ERROR|closed"},
		"6.4 reset of a wrong length":           {open(raw(http2.FrameRSTStream, 0, 1, make([]byte, 3))), "goaway FRAME_SIZE_ERROR|closed"},
		"6.5 settings of a wrong length":        {raw(http2.FrameSettings, 0, 0, make([]byte, 5)), "goaway FRAME_SIZE_ERROR|closed"},
		"6.5 settings acknowledged with values": {raw(http2.FrameSettings, http2.FlagSettingsAck, 0, make([]byte, 6)), "goaway FRAME_SIZE_ERROR|closed"},
		"6.5 settings on a stream":              {raw(http2.FrameSettings, 0, 1, nil), "goaway PROTOCOL_ERROR|closed"},
		"6.5.2 window too large":                {raw(http2.FrameSettings, 0, 0, []byte{0, 4, 0x80, 0, 0, 0}), "goaway FLOW_CONTROL_ERROR|closed"},
		"6.5.2 frame size too small":            {raw(http2.FrameSettings, 0, 0, []byte{0, 5, 0, 0, 0, 1}), "goaway PROTOCOL_ERROR|closed"},
		"6.5.2 push neither 0 nor 1":            {raw(http2.FrameSettings, 0, 0, []byte{0, 2, 0, 0, 0, 2}), "goaway PROTOCOL_ERROR|closed"},
		"6.6 push by a visitor":                 {raw(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, []byte{0, 0, 0, 2, 0x82}), "goaway PROTOCOL_ERROR|closed"},
		"6.7 ping of a wrong length":            {raw(http2.FramePing, 0, 0, make([]byte, 7)), "goaway FRAME_SIZE_ERROR|closed"},
		"6.7 ping on a stream":                  {raw(http2.FramePing, 0, 1, make([]byte, 8)), "goaway PROTOCOL_ERROR|closed"},
		"6.9 window update of 0":                {raw(http2.FrameWindowUpdate, 0, 0, make([]byte, 4)), "goaway PROTOCOL_ERROR|closed"},
		"6.9.1 window past its most": {func(c *http2Conn) {
			for range 2 {
				c.framer.WriteWindowUpdate(0, 1<<31-1)
			}
		}, "goaway FLOW_CONTROL_ERROR|closed"},
		"6.9.1 stream's window past its most": {open(func(c *http2Conn) {
			for range 2 {
				c.framer.WriteWindowUpdate(1, 1<<31-1)
			}
		}), "reset FLOW_CONTROL_ERROR|200"},
		"6.10 continuation of nothing": {raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 1, []byte{0x82}), "goaway PROTOCOL_ERROR|closed"},
		"6.10 continuation of another stream": {func(c *http2Conn) {
			raw(http2.FrameHeaders, 0, 1, c.encode(request("/")...))(c)
			raw(http2.FrameContinuation, http2.FlagContinuationEndHeaders, 3, nil)(c)
		}, "goaway PROTOCOL_ERROR|closed"},
		"8.1 data that contradict the length": {func(c *http2Conn) {
			c.headers(1, false, append(request("/"), hpack.HeaderField{Name: "content-length", Value: "1"})...)
			c.framer.WriteData(1, true, []byte("xy"))
		}, "reset PROTOCOL_ERROR|200|400|502"},
		"8.2.2 connection-specific field": {func(c *http2Conn) {
			c.headers(1, true, append(request("/"), hpack.HeaderField{Name: "te", Value: "chunked"})...)
		}, "reset PROTOCOL_ERROR|400"},
		"8.2.2 connection": {func(c *http2Conn) {
			c.headers(1, true, append(request("/"), hpack.HeaderField{Name: "connection", Value: "keep-alive"})...)
		}, "reset PROTOCOL_ERROR|400"},
		"6.5.2 frame over the limit": {func(c *http2Conn) {
			raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, make([]byte, 16<<10+1))(c)
		}, "goaway FRAME_SIZE_ERROR|closed"},
		"8.3 status in a request": {func(c *http2Conn) {
			c.headers(1, true, append(request("/"), hpack.HeaderField{Name: ":status", Value: "200"})...)
		}, "reset PROTOCOL_ERROR|400"},
		"3.4 no preface": {func(c *http2Conn) { io.WriteString(c.Conn, "GET / HTTP/1.1\r\n\r\n") }, "goaway|closed"},
		"headers beyond the limit": {func(c *http2Conn) {
			c.headers(1, true, append(request("/"), hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 15<<10)})...)
		}, "200|431|goaway|closed"},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialHTTP2(t, s)
			defer conn.Close()
			c.send(conn)
			got := conn.answer(1)
			for want := range strings.SplitSeq(c.want, "|") {
				if strings.HasPrefix(got, want) {
					return
				}
			}
			t.Errorf("got %s, want %s", got, c.want)
		})
	}
	s.unharmed(t)
}

// TestHeaderBombsAreRefused sends headers that are large only when decompressed, and too
// many of them.
func TestHeaderBombsAreRefused(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	before := heap()
	for range 20 {
		c := dialHTTP2(t, s)
		// One field of 4,000 bytes goes into the table; 16,000 mentions of it
		// are a byte each on the wire and 64 MB unpacked.
		bomb := append(c.encode(append(request("/"), hpack.HeaderField{Name: "x", Value: strings.Repeat("y", 3900)})...), bytes.Repeat([]byte{0xbe}, 15_000)...)
		c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: bomb[:16<<10], EndStream: true, EndHeaders: true})
		if got := c.answer(1); got == "200" {
			t.Error("a bomb is taken for a request")
		}
		c.Close()
	}
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, "X-%d: y\r\n", i)
	}
	if _, got := exchange(t, hostOf(t, s.http), "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n"+many.String()+"\r\n"); got != "" && !strings.HasPrefix(got, "HTTP/1.1 431") {
		t.Errorf("20,000 headers: %.100q", got)
	}
	if grown := heap() - before; grown > 64<<20 {
		t.Errorf("bombs hold %d MiB", grown>>20)
	}
	s.unharmed(t)
}

// TestHeadsOfManyLinesAreRefused sends heads with many lines, as each takes many times
// more memory than it has bytes. What follows a head does not count, and each head counts
// by itself.
func TestHeadsOfManyLinesAreRefused(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, _ := io.Copy(io.Discard, r.Body); n > 0 {
			fmt.Fprint(w, n)
			return
		}
		io.WriteString(w, "hello")
	}))
	lines := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%x:\n", i)
		}
		return b.String()
	}
	roots := s.roots(t)
	for scheme, dial := range map[string]func() (net.Conn, error){
		"http": func() (net.Conn, error) { return net.Dial("tcp", hostOf(t, s.http)) },
		"https": func() (net.Conn, error) {
			return tls.Dial("tcp", s.Addrs().HTTPS, &tls.Config{RootCAs: roots, ServerName: "shop.relay.test"})
		},
	} {
		refused, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer refused.Close()
		_ = refused.SetDeadline(time.Now().Add(patience))
		_, _ = io.WriteString(refused, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: close\r\n"+lines(9000)+"\r\n") // it may be cut off
		if answer, _ := io.ReadAll(refused); len(answer) > 0 && !strings.HasPrefix(string(answer), "HTTP/1.1 431") {
			t.Errorf("%s: 9,000 lines: got %.100q", scheme, answer)
		}
		conn, err := dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_ = conn.SetDeadline(time.Now().Add(patience))
		br := bufio.NewReader(conn)
		body := strings.Repeat("\n", 20_000)
		for i := range 3 {
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length: %d\r\n%s\r\n%s", len(body), lines(400), body)
			resp, err := http.ReadResponse(br, nil)
			if err != nil {
				t.Fatalf("%s: request %d: %v", scheme, i, err)
			}
			if got, err := io.ReadAll(resp.Body); err != nil || string(got) != strconv.Itoa(len(body)) {
				t.Errorf("%s: request %d: got %q, %v", scheme, i, got, err)
			}
		}
	}
	s.unharmed(t)
}

// TestManyTrailersAreRefused sends many trailers, as one line of a head has room for
// thousands of names.
func TestManyTrailersAreRefused(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		for _, many := range []int{60, 100} { // behind the second a connection of HTTP/2 ends
			want := http.StatusOK
			if many == 100 {
				want = http.StatusRequestHeaderFieldsTooLarge
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.https, io.MultiReader(strings.NewReader("body"))) // of no known length
			if err != nil {
				t.Fatal(err)
			}
			req.Trailer = make(http.Header)
			for i := range many {
				req.Trailer.Set(fmt.Sprintf("T%d", i), "")
			}
			resp, err := visitor.Do(req)
			if err != nil {
				t.Fatalf("%s: %d trailers: %v", version, many, err)
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("%s: %d trailers: got status %d, want %d", version, many, resp.StatusCode, want)
			}
		}
	}
}

// TestGarbageInsteadOfTLS sends something that is not a handshake, half of one, or
// another one inside an open connection (renegotiation).
func TestGarbageInsteadOfTLS(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	random := make([]byte, 64<<10)
	rand.Read(random)
	var all sync.WaitGroup // at the same time: some wait for all of header_time
	defer all.Wait()
	for name, b := range map[string][]byte{
		"HTTP":            []byte("GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n"),
		"random":          random,
		"SSLv2":           {0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 16},
		"endless record":  append([]byte{22, 3, 1, 0xff, 0xff}, random...),
		"endless hello":   append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 16<<10)...),
		"alerts":          bytes.Repeat([]byte{21, 3, 3, 0, 2, 1, 0}, 1000),
		"empty records":   bytes.Repeat([]byte{22, 3, 3, 0, 0}, 1000),
		"nothing":         {},
		"data before all": {23, 3, 3, 0, 1, 0},
	} {
		conn, err := net.Dial("tcp", s.edge.HTTPSAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(patience))
			conn.Write(b)
			if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Errorf("%s: the connection stays open", name)
			}
		})
	}
	// TLS 1.2 in which the visitor begins another handshake: crypto/tls ends it.
	plain, err := net.Dial("tcp", s.edge.HTTPSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	plain.SetDeadline(time.Now().Add(patience))
	c := tls.Client(plain, &tls.Config{RootCAs: s.roots(t), ServerName: "shop.relay.test", MaxVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	plain.Write([]byte{22, 3, 3, 0, 4, 1, 0, 0, 0}) // a ClientHello, outside of the connection's keys
	if _, err := io.Copy(io.Discard, c); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Error("a second handshake does not end the connection")
	}
	all.Wait()
	s.unharmed(t)
	eventually(t, "nothing is left of them", func() bool { return s.edge.Figures().Connections < 6 })
}

// TestHandshakeFloodLeavesVisitorsAlone opens connections that begin a handshake and go
// no further, as many as one address may have, over TCP, and sends forged beginnings over
// UDP.
func TestHandshakeFloodLeavesVisitorsAlone(t *testing.T) {
	t.Parallel() // most of it is waiting
	cfg := testConfig(t.TempDir())
	cfg.Limits.ConnectionsPerAddress = 400
	s := startSite(t, cfg, text("hello"))
	s.unharmed(t)
	var held []net.Conn
	defer func() {
		for _, c := range held {
			c.Close()
		}
	}()
	for range 300 {
		c, err := net.Dial("tcp", s.edge.HTTPSAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc})
		held = append(held, c)
	}
	udp, err := net.Dial("udp", s.edge.HTTPSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()
	out, in := 0, 0
	for i := range 2000 {
		p := make([]byte, 1200)
		rand.Read(p)
		p[0] = 0xc0 | p[0]&0x0f // a long header
		copy(p[1:], []byte{0, 0, 0, 1, 8})
		if i%2 == 0 {
			copy(p[1:], []byte{0x0a, 0x0a, 0x0a, 0x0a, 8}) // of a version that nobody speaks
		}
		n, _ := udp.Write(p)
		out += n
	}
	s.unharmed(t)
	buf := make([]byte, 65535)
	for {
		udp.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
		n, err := udp.Read(buf)
		if err != nil {
			break
		}
		in += n
	}
	if in > 3*out {
		t.Errorf("%d bytes of forged packets were answered with %d", out, in)
	}
	eventually(t, "handshakes that go no further are ended", func() bool { return s.edge.Figures().Connections < 10 })
}

// TestUDPVisitorsGetNoMoreThanTheyAreProvedFor counts what a forged address would be sent
// by an origin that answers each byte with a hundred.
func TestUDPVisitorsGetNoMoreThanTheyAreProvedFor(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text("hello"))
	g := s.agent.mustClaim("udp", wire.Claim{Type: wire.TypeUDP}, "flood")
	out, in := 0, 0
	var wg sync.WaitGroup
	var mu sync.Mutex
	for range 32 {
		c, err := net.Dial("udp", fmt.Sprintf("127.0.0.1:%d", g.RemotePort))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer c.Close()
			sent, _ := c.Write(bytes.Repeat([]byte("x"), 100))
			got, buf := 0, make([]byte, 65535)
			c.SetReadDeadline(time.Now().Add(time.Second))
			for {
				n, err := c.Read(buf)
				if err != nil {
					break
				}
				got += n
			}
			mu.Lock()
			defer mu.Unlock()
			out += sent
			in += got
		})
	}
	wg.Wait()
	if in > 3*out {
		t.Errorf("%d bytes were answered with %d, want at most three times as much", out, in)
	}
}

func TestTurnedAwayIsLoggedOnce(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.Limits.ConnectionsPerAddress = 1
	var log lockedBuffer
	r := startRelayWith(t, Options{Config: cfg, Log: slog.New(slog.NewTextHandler(&log, nil))})
	held, err := net.Dial("tcp", r.edge.HTTPAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	eventually(t, "the first is let in", func() bool { return r.edge.Figures().Connections == 1 })
	for range 5 {
		c, err := net.Dial("tcp", r.edge.HTTPAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(patience))
		io.Copy(io.Discard, c)
		c.Close()
	}
	eventually(t, "all are counted", func() bool { return r.edge.Figures().TurnedAway == 5 })
	if n := strings.Count(log.String(), "turned away"); n != 1 || !strings.Contains(log.String(), "address=127.0.0.1") {
		t.Errorf("the log tells of it %d times: %s", n, log.String())
	}
}
