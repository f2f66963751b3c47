package relay

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/quic-go/quic-go/http3"
	"golang.org/x/net/http2"
)

// wsEcho returns an origin that sends back every message.
func wsEcho(tb testing.TB) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{
			Subprotocols: []string{"v2.chat"}, CompressionMode: websocket.CompressionContextTakeover,
		})
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.SetReadLimit(4 << 20)
		for {
			kind, data, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if c.Write(r.Context(), kind, data) != nil {
				return
			}
		}
	})
}

// extended opens a WebSocket by extended CONNECT (RFC 8441, RFC 9220), and returns what
// an HTTP/1.1 client expects.
type extended struct {
	base http.RoundTripper
	h3   bool
}

type extendedBody struct {
	io.ReadCloser
	w *io.PipeWriter
}

func (b *extendedBody) Write(p []byte) (int, error) { return b.w.Write(p) }
func (b *extendedBody) Close() error                { b.w.Close(); return b.ReadCloser.Close() }

func (e extended) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.Header.Get("Sec-Websocket-Key")
	body, w := io.Pipe()
	out := r.Clone(r.Context())
	out.Method, out.Body, out.ContentLength = http.MethodConnect, body, -1
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Key"} {
		out.Header.Del(name)
	}
	if e.h3 {
		out.Proto = "websocket"
	} else {
		out.Header[":protocol"] = []string{"websocket"}
	}
	resp, err := e.base.RoundTrip(out)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		if got := resp.Header.Get("Sec-Websocket-Accept") + resp.Header.Get("Upgrade"); got != "" {
			return nil, fmt.Errorf("the answer has headers of HTTP/1.1: %v", resp.Header)
		}
		sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
		resp.Header.Set("Sec-Websocket-Accept", base64.StdEncoding.EncodeToString(sum[:]))
		resp.Header.Set("Connection", "Upgrade")
		resp.Header.Set("Upgrade", "websocket")
		resp.StatusCode = http.StatusSwitchingProtocols
	}
	resp.Body = &extendedBody{resp.Body, w}
	return resp, nil
}

// webSocketClients returns clients for each version of HTTP.
func (s *site) webSocketClients(tb testing.TB) map[string]*http.Client {
	tb.Helper()
	//nolint:staticcheck // net/http's own Transport takes no :protocol
	h2 := &http2.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.roots(tb)},
		DialTLSContext: func(ctx context.Context, network, addr string, conf *tls.Config) (net.Conn, error) {
			_, port, _ := net.SplitHostPort(addr)
			return (&tls.Dialer{Config: conf}).DialContext(ctx, network, "127.0.0.1:"+port)
		},
	}
	tb.Cleanup(h2.CloseIdleConnections) //nolint:staticcheck // as above
	return map[string]*http.Client{
		"HTTP/1.1": s.visitor,
		"HTTP/2":   {Transport: extended{base: h2}},
		"HTTP/3":   {Transport: extended{base: s.visitor3(tb).Transport.(*http3.Transport), h3: true}},
	}
}

func TestWebSocketByEachVersionOfHTTP(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), wsEcho(t))
	for name, client := range s.webSocketClients(t) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			c, resp, err := websocket.Dial(ctx, s.https+"/chat", &websocket.DialOptions{
				HTTPClient: client, Subprotocols: []string{"v1.chat", "v2.chat"}, CompressionMode: websocket.CompressionContextTakeover,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer c.CloseNow()
			if c.Subprotocol() != "v2.chat" || !strings.Contains(resp.Header.Get("Sec-Websocket-Extensions"), "permessage-deflate") {
				t.Errorf("subprotocol %q, header %v", c.Subprotocol(), resp.Header)
			}
			c.SetReadLimit(4 << 20)
			for _, size := range []int{0, 1, 125, 126, 65535, 65536, 2 << 20} {
				want := bytes.Repeat([]byte("é"), size/2)
				if err := c.Write(ctx, websocket.MessageText, want); err != nil {
					t.Fatal(err)
				}
				if _, got, err := c.Read(ctx); err != nil || !bytes.Equal(got, want) {
					t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(want))
				}
			}
			if err := c.Close(websocket.StatusNormalClosure, "done"); err != nil {
				t.Errorf("close: %v", err)
			}
			eventually(t, "the visitor is counted out", func() bool { return s.edge.Endpoints()[1].Counters().Open == 0 })
		})
	}
}

func TestWebSocketThatIsRefused(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lies" { // accepts without the key's answer
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: AAAA\r\n\r\n")
				conn.Close()
			}
			return
		}
		http.Error(w, "members only", http.StatusForbidden)
	}))
	for name, client := range s.webSocketClients(t) {
		for path, want := range map[string]int{"/": http.StatusForbidden, "/lies": http.StatusBadGateway} {
			if name == "HTTP/1.1" && path == "/lies" {
				continue // the visitor sees to it
			}
			_, resp, err := websocket.Dial(t.Context(), s.https+path, &websocket.DialOptions{HTTPClient: client})
			if err == nil || resp == nil || resp.StatusCode != want {
				t.Errorf("%s %s: %v, %v; want status %d", name, path, resp, err, want)
			}
		}
	}
}

// TestWebSocketThatIsAnsweredWithAPageIsNotOpen asks an origin that answers every path
// with a page. For extended CONNECT, the status of that would say that the WebSocket is
// open.
func TestWebSocketThatIsAnsweredWithAPageIsNotOpen(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/nothing" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		io.WriteString(w, "<html>the page of every path</html>")
	}))
	for name, client := range s.webSocketClients(t) {
		if name == "HTTP/1.1" {
			continue // the visitor sees that the protocol is not changed
		}
		for _, path := range []string{"/", "/nothing"} {
			_, resp, err := websocket.Dial(t.Context(), s.https+path, &websocket.DialOptions{HTTPClient: client})
			if err == nil || resp == nil || resp.StatusCode != http.StatusBadGateway {
				t.Errorf("%s %s: %v, %v; want status 502", name, path, resp, err)
			}
		}
		resp, err := s.visitor.Get(s.https)
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "every path") {
			t.Errorf("behind it the page is %q", body)
		}
		resp.Body.Close()
	}
}

func TestOtherProtocolsByCONNECTAreRefused(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	h2 := s.webSocketClients(t)["HTTP/2"].Transport.(extended).base
	for protocol, want := range map[string]int{"": 405, "connect-udp": 501} {
		u, _ := url.Parse(s.https)
		req := (&http.Request{Method: http.MethodConnect, URL: u, Host: u.Host, Header: http.Header{}}).WithContext(t.Context())
		if protocol != "" {
			req.Header[":protocol"] = []string{protocol}
		}
		resp, err := h2.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("protocol %q: status %d, want %d", protocol, resp.StatusCode, want)
		}
	}
}

// frame is one frame of a client (RFC 6455, section 5.2), masked with zeros.
func frame(first byte, payload []byte) []byte {
	b := []byte{first}
	switch n := len(payload); {
	case n < 126:
		b = append(b, 0x80|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0x80|126), uint16(n))
	default:
		b = binary.BigEndian.AppendUint64(append(b, 0x80|127), uint64(n))
	}
	return append(append(b, 0, 0, 0, 0), payload...)
}

const (
	fin                                            = 0x80
	opMore, opText, opBinary, opClose, opPing byte = 0, 1, 2, 8, 9
)

// webSocketCases are frames to send, followed by a close unless the last is nil: an
// origin that ends with unread bytes may lose its own last ones. The cases follow the
// groups of the Autobahn test suite: framing, pings, reserved bits, opcodes, fragments,
// UTF-8, closing.
var webSocketCases = map[string][][]byte{
	"1 empty":                 {frame(fin|opText, nil)},
	"1 sizes":                 {frame(fin|opText, bytes.Repeat([]byte("*"), 125)), frame(fin|opBinary, make([]byte, 126)), frame(fin|opBinary, make([]byte, 65535)), frame(fin|opBinary, make([]byte, 65536))},
	"2 ping":                  {frame(fin|opPing, []byte("hello")), frame(fin|opPing, nil), frame(fin|opPing, bytes.Repeat([]byte{0xfe}, 125))},
	"2 ping too large":        {frame(fin|opPing, make([]byte, 126)), nil},
	"2 many pings":            {bytes.Repeat(frame(fin|opPing, []byte("x")), 10)},
	"2 byte by byte":          bytes.Split(frame(fin|opText, []byte("slow")), nil),
	"3 reserved bit":          {frame(fin|0x40|opText, []byte("x")), nil},
	"4 reserved opcode":       {frame(fin|opText, []byte("x")), frame(fin|3, nil), nil},
	"4 reserved control":      {frame(fin|11, nil), nil},
	"5 fragments":             {frame(opText, []byte("frag")), frame(fin|opMore, []byte("ment"))},
	"5 ping between":          {frame(opText, []byte("frag")), frame(fin|opPing, []byte("p")), frame(fin|opMore, []byte("ment"))},
	"5 fragmented ping":       {frame(opPing, []byte("frag")), nil},
	"5 continues nothing":     {frame(fin|opMore, []byte("x")), nil},
	"5 text inside fragments": {frame(opText, []byte("x")), frame(fin|opText, []byte("y")), nil},
	"6 character split":       {frame(opText, []byte("κό")[:3]), frame(fin|opMore, []byte("κό")[3:])},
	"6 not UTF-8":             {frame(fin|opText, []byte{0xff, 0xfe})},
	"7 close with a reason":   {frame(fin|opClose, append([]byte{3, 0xe8}, "bye"...)), nil},
	"7 close without a code":  {frame(fin|opClose, nil), nil},
	"7 close of one byte":     {frame(fin|opClose, []byte{3}), nil},
	"7 close with a bad code": {frame(fin|opClose, []byte{0, 1}), nil},
	"9 one megabyte":          {frame(fin|opBinary, make([]byte, 1<<20))},
	"9 a thousand messages":   {bytes.Repeat(frame(fin|opText, []byte("small")), 1000)},
}

// TestWebSocketFramesPassUntouched compares what a visitor gets through the tunnel with
// what the origin sends to one without it.
func TestWebSocketFramesPassUntouched(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), wsEcho(t))
	clients := s.webSocketClients(t)
	for name, parts := range webSocketCases {
		t.Run(name, func(t *testing.T) {
			want, err := transcript(t, http.DefaultClient, "http://"+s.agent.origins[1], parts)
			if err != nil {
				t.Fatalf("without a tunnel: %v", err)
			}
			for version, client := range clients {
				got, err := transcript(t, client, s.https, parts)
				if err != nil {
					t.Errorf("%s: %v", version, err)
				}
				if !bytes.Equal(got, want) {
					t.Errorf("%s: got %d bytes %.80x, want %d bytes %.80x", version, len(got), got, len(want), want)
				}
			}
		})
	}
}

// transcript sends frames and a close, and returns everything that comes back.
func transcript(t *testing.T, client *http.Client, base string, parts [][]byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base, nil)
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
		req.Header.Set(k, v)
	}
	noTimeout := *client
	noTimeout.Timeout = 0 // it would hide the body's Write
	resp, err := noTimeout.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	stream, ok := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != http.StatusSwitchingProtocols || !ok {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	defer context.AfterFunc(ctx, func() { stream.Close() })()
	go func() {
		for _, p := range parts {
			if p == nil {
				return
			}
			if _, err := stream.Write(p); err != nil {
				return
			}
		}
		stream.Write(frame(fin|opClose, []byte{3, 0xe8}))
	}()
	var got bytes.Buffer
	_, err = io.Copy(&got, stream)
	if err != nil && ctx.Err() == nil {
		var reset net.Error
		if errors.As(err, &reset) && reset.Timeout() {
			return got.Bytes(), err
		}
		err = nil // how the end looks differs by version; what came before must not
	}
	return got.Bytes(), err
}

func TestWebSocketEndsWithItsVisitor(t *testing.T) {
	ended := make(chan struct{}, 10)
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		c.Read(context.Background())
		ended <- struct{}{}
	}))
	for name, client := range s.webSocketClients(t) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		c, _, err := websocket.Dial(ctx, s.https, &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c.CloseNow()
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Errorf("%s: the origin does not learn that its visitor has gone", name)
		}
	}
}

// TestWebSocketOfNothingIsRefused asks for a WebSocket with a target that only OPTIONS
// may have.
func TestWebSocketOfNothingIsRefused(t *testing.T) {
	reached := make(chan string, 1)
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.RequestURI }))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.URL.Path = "*"
	resp, err := s.webSocketClients(t)["HTTP/2"].Transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest {
		t.Errorf("got status %d, want 400", resp.StatusCode)
	}
	select {
	case target := <-reached:
		t.Errorf("the origin was asked for %q", target)
	default:
	}
}
