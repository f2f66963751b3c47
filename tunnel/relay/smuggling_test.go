package relay

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"adit/tunnel/wire"
)

// rawOrigin is an origin that keeps the bytes that it reads. They are exactly what the
// edge sends, which no second server may read differently.
type rawOrigin struct {
	ln      net.Listener
	serving sync.WaitGroup

	mu  sync.Mutex
	got map[string][][]byte // by the connection's other end, in the order of their ends
}

func startRawOrigin(tb testing.TB) *rawOrigin {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	o := &rawOrigin{ln: ln, got: make(map[string][][]byte)}
	o.serving.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			o.serving.Go(func() { o.serve(conn) })
		}
	})
	tb.Cleanup(o.close)
	return o
}

func (o *rawOrigin) close() {
	o.ln.Close()
	o.serving.Wait()
}

func (o *rawOrigin) serve(conn net.Conn) {
	defer conn.Close()
	var all bytes.Buffer
	buf := make([]byte, 64<<10)
	conn.SetReadDeadline(time.Now().Add(patience))
	for !bytes.Contains(all.Bytes(), []byte("\r\n\r\n")) || bytes.Contains(all.Bytes(), []byte("chunked")) && !bytes.HasSuffix(all.Bytes(), []byte("0\r\n\r\n")) {
		n, err := conn.Read(buf)
		all.Write(buf[:n])
		if err != nil {
			break
		}
	}
	io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond)) // what else the edge may say
	n, _ := conn.Read(buf)
	all.Write(buf[:n])
	o.mu.Lock()
	defer o.mu.Unlock()
	from := conn.RemoteAddr().String()
	o.got[from] = append(o.got[from], all.Bytes())
}

// of returns what arrived from each visitor, by the visitor's address, once no more can
// arrive because the agent and the origin have ended.
func (o *rawOrigin) of(t *testing.T, s *site) map[string][][]byte {
	t.Helper()
	eventually(t, "the visitors are served", func() bool {
		for _, ep := range s.edge.Endpoints() {
			if ep.Counters().Open != 0 {
				return false
			}
		}
		return s.agent.open.Load() == 0
	})
	s.agent.close()
	o.close()
	all := make(map[string][][]byte)
	for from, got := range o.got {
		visitor, ok := s.agent.visitors.Load(from)
		if !ok {
			t.Fatalf("%s is no connection of the agent", from)
		}
		all[visitor.(string)] = append(all[visitor.(string)], got...)
	}
	return all
}

const (
	forwardedLines = "X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: shop.relay.test\r\nX-Forwarded-Proto: http\r\nForwarded: for=127.0.0.1;host=shop.relay.test;proto=http\r\nCdn-Loop: relay.test\r\n"
	smuggledLine   = "GET /smuggled HTTP/1.1\r\n"
	smuggled       = smuggledLine + "Host: shop.relay.test\r\n\r\n"
)

// TestOneRequestStaysOne sends requests that servers are known to read differently. Each
// is refused, or reaches the origin as exactly one request with a single indication of
// where it ends, and never with what is hidden in it. If the rules say that the chunks
// end the first request, whatever length is given as well, the rest of the connection is
// a second request. The origin sees it as a separate one, or not at all if the visitor
// has left.
func TestOneRequestStaysOne(t *testing.T) {
	origin := startRawOrigin(t)
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, origin.ln.Addr().String())
	head := "POST /ok HTTP/1.1\r\nHost: shop.relay.test\r\n"
	second := map[string]bool{"CL.TE": true, "TE folded": true}
	requests := map[string]string{
		"CL.TE":                      head + "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE.CL":                      head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\n" + smuggled + "\r\n0\r\n\r\n",
		"TE twice":                   head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + smuggled,
		"TE list":                    head + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE quoted":                  head + "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n" + smuggled,
		"TE with tab":                head + "Transfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n",
		"TE vertical tab":            head + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n" + smuggled,
		"TE space before colon":      head + "Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n" + smuggled,
		"TE folded":                  head + "Transfer-Encoding:\r\n chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + smuggled,
		"TE after bare LF":           head + "X: y\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"TE after bare CR":           head + "X: y\rTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"TE underscore":              head + "Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
		"TE on HTTP/1.0":             "POST /ok HTTP/1.0\r\nHost: shop.relay.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
		"CL twice, same":             head + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"CL twice, other":            head + "Content-Length: 5\r\nContent-Length: 0\r\n\r\n" + smuggled,
		"CL list":                    head + "Content-Length: 0, 5\r\n\r\n" + smuggled,
		"CL negative":                head + "Content-Length: -1\r\n\r\n" + smuggled,
		"CL hexadecimal":             head + "Content-Length: 0x5\r\n\r\nhello",
		"CL past an int64":           head + "Content-Length: 18446744073709551616\r\n\r\n" + smuggled,
		"CL with a NUL":              head + "Content-Length: 0\x00\r\n\r\n" + smuggled,
		"chunk extension":            head + "Transfer-Encoding: chunked\r\n\r\n5;ext=\"a\"\r\nhello\r\n0\r\n\r\n",
		"chunk extension with LF":    head + "Transfer-Encoding: chunked\r\n\r\n5;ext\nhello\r\n0\r\n\r\n",
		"chunk size with a sign":     head + "Transfer-Encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
		"chunk size of 20 digits":    head + "Transfer-Encoding: chunked\r\n\r\n100000000000000005\r\nhello\r\n0\r\n\r\n",
		"chunk without its end":      head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX\r\n0\r\n\r\n" + smuggled,
		"chunk size ends by bare CR": head + "Transfer-Encoding: chunked\r\n\r\n5\rhello\r\n0\r\n\r\n",
		"trailer named length":       head + "Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n0\r\nContent-Length: 50\r\n\r\n",
		"hop-by-hop Host":            head + "Connection: Host, X-Forwarded-For\r\nContent-Length: 0\r\n\r\n",
		"hop-by-hop length":          head + "Connection: Content-Length\r\nContent-Length: 5\r\n\r\nhello",
		"absolute form, other host":  "GET http://other.relay.test/ok HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n",
		"space in the target":        "GET /ok HTTP/1.1\r\nX: HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n",
		"target with a second one":   "GET /ok /smuggled HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n",
		"method with a colon":        "GET: /ok HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n",
		"HTTP/0.9":                   "GET /smuggled\r\n\r\n",
		"HTTP/1.2":                   "GET /ok HTTP/1.2\r\nHost: shop.relay.test\r\n\r\n",
		"preface of HTTP/2":          "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"upgrade to h2c":             "GET /ok HTTP/1.1\r\nHost: shop.relay.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
		"NUL in a value":             head + "X: a\x00b\r\nContent-Length: 0\r\n\r\n",
		"header without a colon":     head + "nonsense\r\nContent-Length: 0\r\n\r\n",
		"empty header name":          head + ": x\r\nContent-Length: 0\r\n\r\n",
	}
	visitors, refused := map[string]string{}, map[string]bool{}
	for name, raw := range requests {
		visitor, answer := exchangeWithin(t, hostOf(t, s.http), raw, time.Second)
		visitors[name] = visitor
		refused[name] = len(answer) == 0 || strings.HasPrefix(answer, "HTTP/1.1 4") || strings.HasPrefix(answer, "HTTP/1.1 5") || strings.HasPrefix(answer, "HTTP/1.0 4")
	}
	got := origin.of(t, s)
	for name, visitor := range visitors {
		t.Run(name, func(t *testing.T) {
			if len(got[visitor]) == 0 && !refused[name] {
				t.Error("answered without the origin")
			}
			checkRequests(t, got[visitor], second[name])
		})
	}
}

// checkRequests checks what an origin received from one visitor's connection: one request
// and, if allowed, a second one, each on its own connection and in any order. One is
// empty if its visitor left while its stream was being opened.
func checkRequests(t *testing.T, all [][]byte, second bool) {
	t.Helper()
	first := true
	for _, got := range all {
		switch {
		case len(got) == 0:
		case second && string(got) == smuggledLine+"Host: shop.relay.test\r\n"+forwardedLines+"\r\n":
			second = false
		case first:
			checkOneRequest(t, got)
			first = false
		default:
			t.Errorf("a second request reached the origin: %q", got)
		}
	}
}

// exchange sends bytes and returns the visitor's address and everything that comes back.
// The visitor stays until the first answer has begun, since one that leaves earlier is
// not served.
func exchange(t *testing.T, addr, raw string) (visitor, answer string) {
	t.Helper()
	return exchangeWithin(t, addr, raw, patience)
}

// exchangeWithin is exchange by a visitor that stops sending if the first answer has not
// begun in time: the server is waiting for more, but the visitor has sent everything.
func exchangeWithin(t *testing.T, addr, raw string, wait time.Duration) (visitor, answer string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, raw)
	conn.SetDeadline(time.Now().Add(wait))
	first := make([]byte, 1)
	n, _ := io.ReadFull(conn, first)
	conn.(*net.TCPConn).CloseWrite()
	conn.SetDeadline(time.Now().Add(patience))
	rest, _ := io.ReadAll(conn)
	return conn.LocalAddr().String(), string(first[:n]) + string(rest)
}

// checkOneRequest parses what an origin received.
func checkOneRequest(t *testing.T, got []byte) {
	t.Helper()
	if len(got) == 0 {
		return // a stream was opened, and the request then found to be none
	}
	text := string(got)
	header, body, whole := strings.Cut(text, "\r\n\r\n")
	lower := strings.ToLower(header)
	lengths, chunked := strings.Count(lower, "\r\ncontent-length:"), strings.Count(lower, "\r\ntransfer-encoding: chunked")
	switch {
	case !whole:
		t.Errorf("half a request: %q", text)
	case strings.Count(lower, "\r\nhost:") != 1, lengths+chunked > 1, strings.Count(lower, "transfer-encoding") != chunked:
		t.Errorf("its end or its host is said twice: %q", text)
	case strings.Contains(strings.ReplaceAll(header, "\r\n", ""), "\n"), strings.Contains(strings.ReplaceAll(header, "\r\n", ""), "\r"), strings.Contains(header, "\x00"):
		t.Errorf("a header has a line end inside: %q", text)
	case strings.Contains(lower, "\r\nupgrade: h2c"), strings.Contains(lower, "http2-settings"):
		t.Errorf("a change to HTTP/2 reaches the origin: %q", text)
	case strings.Contains(header, "other.relay.test") && !strings.Contains(header, "Host: other.relay.test"):
		t.Errorf("the host and the target differ: %q", text)
	case chunked == 0 && lengths == 0 && body != "":
		t.Errorf("bytes follow a request without a body: %q", text)
	case strings.Contains(header, "/smuggled"):
		t.Errorf("the hidden request: %q", text)
	}
}

// TestHTTP2FieldsDoNotBecomeLines sends over HTTP/2 what would break a line of HTTP/1.1.
func TestHTTP2FieldsDoNotBecomeLines(t *testing.T) {
	origin := startRawOrigin(t)
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: "shop"}, origin.ln.Addr().String())
	type field = hpack.HeaderField
	usual := func(more ...field) []field {
		return append([]field{{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/ok"}, {Name: ":authority", Value: "shop.relay.test"}}, more...)
	}
	with := func(name, value string) []field {
		list := usual()
		for i := range list {
			if list[i].Name == name {
				list[i].Value = value
			}
		}
		return list
	}
	visitors, status := map[string]string{}, map[string]string{}
	for name, fields := range map[string][]field{
		"CRLF in a value":            usual(field{Name: "x", Value: "a\r\nTransfer-Encoding: chunked"}),
		"LF in a value":              usual(field{Name: "x", Value: "a\n" + smuggled}),
		"CRLF in a name":             usual(field{Name: "x\r\ny", Value: "a"}),
		"colon in a name":            usual(field{Name: "transfer-encoding: chunked", Value: "a"}),
		"upper case":                 usual(field{Name: "Transfer-Encoding", Value: "chunked"}),
		"transfer-encoding":          usual(field{Name: "transfer-encoding", Value: "chunked"}),
		"connection":                 usual(field{Name: "connection", Value: "close"}),
		"upgrade":                    usual(field{Name: "upgrade", Value: "h2c"}),
		"two lengths":                usual(field{Name: "content-length", Value: "5"}, field{Name: "content-length", Value: "0"}),
		"length that lies":           usual(field{Name: "content-length", Value: "50"}),
		"pseudo-header after others": usual(field{Name: "x", Value: "y"}, field{Name: ":path", Value: "/smuggled"}),
		"two paths":                  usual(field{Name: ":path", Value: "/smuggled"}),
		"unknown pseudo-header":      usual(field{Name: ":x", Value: "y"}),
		"path with CRLF":             with(":path", "/ok HTTP/1.1\r\nHost: shop.relay.test\r\n\r\nGET /smuggled"),
		"path with a space":          with(":path", "/ok HTTP/1.1"),
		"path without a slash":       with(":path", "smuggled"),
		"path that is a URL":         with(":path", "http://other.relay.test/ok"),
		"method with CRLF":           with(":method", "GET /smuggled HTTP/1.1\r\nX:"),
		"method with spaces":         with(":method", "GET /smuggled HTTP/1.1"),
		"method with a colon":        with(":method", "GET:"),
		"authority with CRLF":        with(":authority", "shop.relay.test\r\nX: y"),
		"authority with a user":      with(":authority", "other@shop.relay.test"),
		"host that differs":          usual(field{Name: "host", Value: "other.relay.test"}),
		"scheme with CRLF":           with(":scheme", "https\r\nX: y"),
		"no path":                    usual()[:2],
	} {
		func() {
			c := dialHTTP2(t, s)
			defer c.Close()
			c.headers(1, true, fields...)
			visitors[name], status[name] = c.LocalAddr().String(), c.answer(1)
		}()
	}
	if status, _ := get(t, s.visitor, s.https); status != 200 {
		t.Errorf("another visitor gets status %d", status)
	}
	got := origin.of(t, s)
	for name, visitor := range visitors {
		t.Run(name, func(t *testing.T) {
			if len(got[visitor]) == 0 && status[name] == "200" {
				t.Error("answered without the origin")
			}
			for _, got := range got[visitor] {
				checkOneRequest(t, got)
				if len(got) > 0 && !bytes.HasPrefix(got, []byte("GET /ok HTTP/1.1\r\nHost: shop.relay.test\r\n")) &&
					!bytes.HasPrefix(got, []byte("GET /ok%20HTTP/1.1 HTTP/1.1\r\nHost: shop.relay.test\r\n")) {
					t.Errorf("the origin got %q", got)
				}
			}
			if len(got[visitor]) > 1 {
				t.Errorf("one request reached the origin %d times", len(got[visitor]))
			}
		})
	}
}

// http2Conn is a connection whose frames a test writes itself.
type http2Conn struct {
	*tls.Conn
	framer *http2.Framer
	t      *testing.T
	block  bytes.Buffer
	enc    *hpack.Encoder
}

func dialHTTP2(t *testing.T, s *site) *http2Conn {
	t.Helper()
	return dialHTTP2By(t, s, &tls.Config{RootCAs: s.roots(t), ServerName: "shop.relay.test", NextProtos: []string{"h2"}})
}

func dialHTTP2By(t *testing.T, s *site, conf *tls.Config) *http2Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d := tls.Dialer{Config: conf}
	conn, err := d.DialContext(ctx, "tcp", s.edge.HTTPSAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(2 * patience))
	c := &http2Conn{Conn: conn.(*tls.Conn), framer: http2.NewFramer(conn, conn), t: t}
	c.framer.AllowIllegalWrites, c.framer.AllowIllegalReads = true, true
	c.enc = hpack.NewEncoder(&c.block)
	io.WriteString(conn, http2.ClientPreface)
	c.framer.WriteSettings()
	return c
}

func (c *http2Conn) encode(fields ...hpack.HeaderField) []byte {
	c.block.Reset()
	for _, f := range fields {
		c.enc.WriteField(f)
	}
	return bytes.Clone(c.block.Bytes())
}

func (c *http2Conn) headers(stream uint32, end bool, fields ...hpack.HeaderField) error {
	return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: c.encode(fields...), EndStream: end, EndHeaders: true})
}

// answer returns the status that a stream gets, or how it ends: "reset CODE", "goaway
// CODE", "closed".
func (c *http2Conn) answer(stream uint32) string {
	dec := hpack.NewDecoder(4096, nil)
	for {
		f, err := c.framer.ReadFrame()
		if err != nil {
			return "closed"
		}
		switch f := f.(type) {
		case *http2.HeadersFrame:
			fields, err := dec.DecodeFull(f.HeaderBlockFragment())
			if err == nil && f.StreamID == stream && len(fields) > 0 {
				return fields[0].Value
			}
		case *http2.RSTStreamFrame:
			if f.StreamID == stream {
				return "reset " + f.ErrCode.String()
			}
		case *http2.GoAwayFrame:
			return "goaway " + f.ErrCode.String()
		}
	}
}

// TestHTTP3HostsAreNotMixed sends a request for a name other than the handshake's, as a
// browser does that uses one connection for two names.
func TestHTTP3HostsAreNotMixed(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode([]string{r.Host, r.Header.Get("X-Forwarded-Host")})
	}))
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https, nil)
	req.Host = "nobody.relay.test"
	resp, err := s.visitor3(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("the name of the handshake decides, not the request's: status %d", resp.StatusCode)
	}
}
