package relay

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// rawSite publishes an origin that answers each connection with serve.
func rawSite(t *testing.T, serve func(n int, conn net.Conn, r *bufio.Reader)) (url string, visitor *http.Client) {
	t.Helper()
	r := startRelay(t, testConfig(t.TempDir()))
	a := connect(t, r.client(t, "shop"), "i1")
	return a.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, rawAnswers(t, serve)).PublicURL, r.visitor(t)
}

// rawAnswers starts an origin that answers each connection with serve, and returns its
// address.
func rawAnswers(t *testing.T, serve func(n int, conn net.Conn, r *bufio.Reader)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for n := 0; ; n++ {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(patience))
				serve(n, conn, bufio.NewReader(conn))
			}()
		}
	}()
	return ln.Addr().String()
}

func TestAnswersOfOddOrigins(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	a, visitor, made := connect(t, r.client(t, "shop"), "i1"), r.visitor(t), 0
	for name, c := range map[string]struct {
		answer string
		status int
		body   string
	}{
		"no length, ended by the connection": {"HTTP/1.1 200 OK\r\n\r\nall of it", 200, "all of it"},
		"HTTP/1.0":                           {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
		"no content":                         {"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", 204, ""},
		"no HTTP":                            {"SSH-2.0-OpenSSH_9.6\r\n\r\n", 502, ""},
		"nothing":                            {"", 502, ""},
		"a head that breaks off":             {"HTTP/1.1 200 OK\r\nContent-", 502, ""},
		"a head without end":                 {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20), 502, ""},
		"hints without end":                  {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100), 502, ""},
		"another protocol":                   {"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 502, ""},
		"two lengths":                        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", 502, ""},
		"lengths that are no two":            {"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok", 200, "ok"},
		"a length that is none":              {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok", 200, "ok"},
		"chunks said twice":                  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 200, "ok"},
		"an encoding that is none":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
		"an encoding that nobody asked for":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", 502, ""},
		"a line that is no field":            {"HTTP/1.1 200 OK\r\nno field\r\n goes on\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
		"a value that is none":               {"HTTP/1.1 200 OK\r\nX: a\x01\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
		"an odd line in a long head":         {"HTTP/1.1 200 OK\r\nno field\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n" + strings.Repeat("ok", 10<<10), 200, strings.Repeat("ok", 10<<10)},
		"an odd line in a head without end":  {"HTTP/1.1 200 OK\r\nno field\r\nX: " + strings.Repeat("x", 2<<20), 502, ""},
		"SHOUTcast":                          {"ICY 200 OK\r\nicy-name: x\r\n\r\nmusic", 200, "music"},
		"continue that nobody asked for":     {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			made++
			url := a.mustClaim(fmt.Sprint("k", made), wire.Claim{Type: wire.TypeHTTP}, answering(t, c.answer)).PublicURL
			resp, err := visitor.Get(url)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if resp.StatusCode != c.status || err != nil || c.status == 200 && string(body) != c.body {
				t.Errorf("got %d %.100q %v, want %d %q", resp.StatusCode, body, err, c.status, c.body)
			}
			if c.status == http.StatusBadGateway && !strings.Contains(string(body), "local service") {
				t.Errorf("the page does not say whose fault it is:\n%s", body)
			}
		})
	}
}

func TestStreamsAreUsedAgain(t *testing.T) {
	var conns, requests atomic.Int32
	url, visitor := rawSite(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		conns.Add(1)
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			io.Copy(io.Discard, req.Body)
			requests.Add(1)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
		}
	})
	for i := range 20 {
		resp, err := visitor.Post(url, "text/plain", io.MultiReader(strings.NewReader(strings.Repeat("b", i*1000))))
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != "ok" || err != nil {
			t.Fatalf("got %q, %v", body, err)
		}
		resp.Body.Close()
	}
	if conns.Load() > 3 || requests.Load() != 20 {
		t.Errorf("%d connections for %d requests, want hardly more than one", conns.Load(), requests.Load())
	}
}

// TestCrowdsUseStreamsAgain uses an origin that answers once all requests of a crowd are
// there, so that each of them needs a connection of its own. The next crowd must reuse
// these connections.
func TestCrowdsUseStreamsAgain(t *testing.T) {
	const crowd = 600
	made, asked := atomic.Int64{}, make(chan chan struct{}, crowd)
	url, visitor := rawSite(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		made.Add(1)
		for {
			if _, err := http.ReadRequest(r); err != nil {
				return
			}
			answer := make(chan struct{})
			asked <- answer
			select {
			case <-answer:
			case <-t.Context().Done(): // the test has failed
				return
			}
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	for range 3 {
		var all sync.WaitGroup
		for range crowd {
			all.Go(func() {
				resp, err := visitor.Get(url)
				if err != nil {
					t.Error(err)
					return
				}
				defer resp.Body.Close()
				if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "ok" {
					t.Errorf("got %q %v, want ok", body, err)
				}
			})
		}
		var waiting []chan struct{}
		for len(waiting) < crowd {
			select {
			case answer := <-asked:
				waiting = append(waiting, answer)
			case <-time.After(patience):
				t.Fatalf("got %d requests at the origin at once, want %d", len(waiting), crowd)
			}
		}
		for _, answer := range waiting {
			close(answer)
		}
		all.Wait()
	}
	if n := made.Load(); n > crowd*5/4 { // an answer may be there before its stream is free again
		t.Errorf("got %d connections to the origin, want hardly more than %d", n, crowd)
	}
}

// TestOriginThatEndsConnections uses an origin that answers one request per connection and
// then ends it without notice. No visitor may notice that.
func TestOriginThatEndsConnections(t *testing.T) {
	url, visitor := rawSite(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	for range 50 {
		if status, body := get(t, visitor, url); status != 200 || body != "ok" {
			t.Fatalf("got %d %q", status, body)
		}
	}
}

func TestAnswerBeforeTheBody(t *testing.T) {
	url, visitor := rawSite(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nmuch")
			io.Copy(io.Discard, r)
		}
	})
	body, in := io.Pipe()
	defer in.Close()
	go io.WriteString(in, "the beginning")
	resp, err := visitor.Post(url, "text/plain", body)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, err := io.ReadAll(resp.Body); resp.StatusCode != 413 || string(answer) != "much" || err != nil {
		t.Errorf("got %d %q %v", resp.StatusCode, answer, err)
	}
}

func TestVisitorThatLeavesEndsTheRequest(t *testing.T) {
	arrived, left := make(chan struct{}, 2), make(chan struct{}, 2)
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		io.Copy(io.Discard, r.Body) // net/http looks for the visitor's end only behind the body
		<-r.Context().Done()
		left <- struct{}{}
	}))
	for _, raw := range []string{
		"GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length: 100\r\n\r\npart",
	} {
		conn, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, raw)
		<-arrived
		conn.Close()
		select {
		case <-left:
		case <-time.After(patience):
			t.Errorf("%.4s: the origin still works for a visitor that has left", raw)
		}
	}
}

// TestVisitorThatLeavesBeforeItsBodyEndsTheRequest uses visitors over HTTP/1.1 that hold
// back their bodies, and leave in the middle of an answer that came without waiting for
// one.
func TestVisitorThatLeavesBeforeItsBodyEndsTheRequest(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	left := make(chan struct{}, 1)
	s.agent.mustClaim("k", wire.Claim{Type: wire.TypeHTTP, Domain: "feed"}, rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err != nil {
			return
		}
		io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nbegun")
		conn.SetDeadline(time.Time{})
		io.Copy(io.Discard, r)
		left <- struct{}{}
	}))
	for name, fields := range map[string]string{
		"of known length": "Content-Length: 100\r\n\r\n",
		"in chunks":       "Transfer-Encoding: chunked\r\n\r\n",
		"that has begun":  "Content-Length: 100\r\n\r\npart",
	} {
		conn, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(patience))
		io.WriteString(conn, "POST / HTTP/1.1\r\nHost: feed.relay.test\r\nExpect: 100-continue\r\n"+fields)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, len("begun"))); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		select {
		case <-left:
		case <-time.After(patience):
			t.Errorf("a body %s: the origin still works for a visitor that has left", name)
		}
	}
}

// TestBodyThatBreaksOffIsNotWhole uses a visitor that leaves half-way through a chunked
// body. The origin must not take it for the whole body.
func TestBodyThatBreaksOffIsNotWhole(t *testing.T) {
	got, begun := make(chan error, 1), make(chan struct{})
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.ReadFull(r.Body, make([]byte, 5))
		close(begun)
		_, err := io.Copy(io.Discard, r.Body)
		got <- err
	}))
	conn, err := net.Dial("tcp", hostOf(t, s.http))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "POST / HTTP/1.1\r\nHost: shop.relay.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
	<-begun
	conn.Close()
	select {
	case err := <-got:
		if err == nil {
			t.Error("the origin took a part for the whole")
		}
	case <-time.After(patience):
		t.Error("the origin still waits")
	}
}

func TestTrailersOfARequestReachTheOrigin(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s", body, r.Trailer.Get("X-Sum"))
	}))
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			req, _ := http.NewRequestWithContext(t.Context(), method, s.https, io.MultiReader(strings.NewReader("body")))
			req.Trailer = http.Header{"X-Sum": {"4"}}
			resp, err := visitor.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(resp.Body); string(got) != "body 4" || err != nil {
				t.Errorf("%s by %s: got %q, %v", method, version, got, err)
			}
			resp.Body.Close()
		}
	}
}

// TestHeadTellsNoLengthThatNobodyKnows sends HEAD for something that the origin would
// send in chunks or frames. A length of 0 would say that there is nothing.
func TestHeadTellsNoLengthThatNobodyKnows(t *testing.T) {
	origin := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = http.NewResponseController(w).Flush()
		io.WriteString(w, "some text")
	})
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTPS, Domain: "http"}, startOrigin(t, origin))
	s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTPS, Domain: "h2c", HTTP2: true}, startH2C(t, origin))
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		for _, name := range []string{"http", "h2c"} {
			resp, err := visitor.Head("https://" + name + ".relay.test/")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if got := resp.Header.Values("Content-Length"); resp.StatusCode != 200 || len(got) != 0 {
				t.Errorf("%s by %s: status %d, length %q; want none", name, version, resp.StatusCode, got)
			}
		}
	}
}

// TestAnswersWithoutContentTellNoLength uses an origin that gives the length of the
// content in answers that have none. A client that believes it waits for the rest. In a
// 304, it is the length of the answer that the visitor already has.
func TestAnswersWithoutContentTellNoLength(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("odd", wire.Claim{Type: wire.TypeHTTPS, Domain: "odd"}, rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if asked, err := http.ReadRequest(r); err == nil {
			io.WriteString(conn, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\nContent-Length: 7\r\n\r\n"+
				"HTTP/1.1 "+asked.URL.Path[1:]+" Odd\r\nContent-Length: 5\r\nConnection: close\r\n\r\n")
		}
	}))
	s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTPS, Domain: "h2c", HTTP2: true}, startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Set("Content-Length", "5")
		status, _ := strconv.Atoi(r.URL.Path[1:])
		w.WriteHeader(status)
	})))
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		for _, url := range []string{"https://odd.relay.test/", "https://h2c.relay.test/"} {
			for _, status := range []int{http.StatusNoContent, http.StatusNotModified} {
				resp, hints, _ := answered(t, visitor, fmt.Sprint(url, status))
				if resp.StatusCode != status || resp.Header["Content-Length"] != nil {
					t.Errorf("%s of %s: status %d, header %v, want %d", version, url, resp.StatusCode, resp.Header, status)
				}
				if len(hints) != 1 || hints[0]["Content-Length"] != nil || hints[0].Get("Link") == "" {
					t.Errorf("%s of %s: interim answers %v", version, url, hints)
				}
			}
		}
	}
}

// TestWhatCameOfABrokenAnswerReachesTheVisitor uses an origin that ends in the middle of
// its answer. The head arrives together with what there is of the body.
func TestWhatCameOfABrokenAnswerReachesTheVisitor(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	s.agent.mustClaim("broken", wire.Claim{Type: wire.TypeHTTPS, Domain: "broken"}, rawAnswers(t, func(_ int, conn net.Conn, r *bufio.Reader) {
		if _, err := http.ReadRequest(r); err == nil {
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nfirst \r\n6\r\nla")
		}
	}))
	for version, visitor := range s.secureVisitors(t, s.testRelay) {
		if version == "HTTP/3.0" {
			continue // there a stream that is reset gives up what is on its way
		}
		resp, err := visitor.Get("https://broken.relay.test/")
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(body) != "first la" || err == nil {
			t.Errorf("%s: got %q, %v, want what came, and an error", version, body, err)
		}
	}
}
