package relay

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestVisitorThatSendsNoMoreIsAnswered covers `nc -N` and simple monitors, which end
// their side after the request.
func TestVisitorThatSendsNoMoreIsAnswered(t *testing.T) {
	t.Parallel() // most of it is waiting
	const size = 4 << 20
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), halfOpen: patience}) // for machines that have much to do
	s := startSiteOn(t, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
			t.Error("the request was given up")
		case <-time.After(200 * time.Millisecond): // well after the end has come to the edge
			fmt.Fprintf(w, "to %s: %s", asked, strings.Repeat("x", size))
		}
	}))
	for _, raw := range []string{
		"GET / HTTP/1.0\r\nHost: shop.relay.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: shop.relay.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	} {
		for name, end := range map[string]func(net.Conn) (net.Conn, error){
			"plain": func(conn net.Conn) (net.Conn, error) {
				io.WriteString(conn, raw)
				return conn, conn.(*net.TCPConn).CloseWrite()
			},
			"TLS 1.2":              endTLS(t, s, raw, tls.VersionTLS12, false),
			"TLS 1.3":              endTLS(t, s, raw, tls.VersionTLS13, false),
			"TLS 1.2, in one part": endTLS(t, s, raw, tls.VersionTLS12, true),
			"TLS 1.3, in one part": endTLS(t, s, raw, tls.VersionTLS13, true),
		} {
			url := s.http
			if name != "plain" {
				url = s.https
			}
			tcp, err := net.Dial("tcp", hostOf(t, url))
			if err != nil {
				t.Fatal(err)
			}
			tcp.SetDeadline(time.Now().Add(patience))
			conn, err := end(tcp)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(got), "HTTP/1.") || !strings.Contains(string(got[:20]), " 200 ") || len(got) < size {
				t.Errorf("%s: %q: got %d bytes, %.20q, %v", name, raw, len(got), got, err)
			}
			tcp.Close()
		}
	}
	recorded(t, r.Relay, "the last", func(e wire.Access) bool { return e.Status == http.StatusOK })
}

// endTLS sends a request over TLS and ends the visitor's side: TLS' and TCP's, at
// once with the request or a little later.
func endTLS(tb testing.TB, s *site, raw string, version uint16, inOnePart bool) func(net.Conn) (net.Conn, error) {
	return func(conn net.Conn) (net.Conn, error) {
		gather := &gathering{Conn: conn}
		secure := tls.Client(gather, &tls.Config{ServerName: "shop.relay.test", RootCAs: s.roots(tb), MinVersion: version, MaxVersion: version})
		if err := secure.Handshake(); err != nil {
			return nil, err
		}
		gather.hold = inOnePart
		io.WriteString(secure, raw)
		if err := secure.CloseWrite(); err != nil {
			return nil, err
		}
		conn.SetDeadline(time.Now().Add(patience)) // CloseWrite has set another
		if _, err := conn.Write(gather.held); err != nil {
			return nil, err
		}
		return secure, conn.(*net.TCPConn).CloseWrite()
	}
}

// gathering holds what is written to it, if it is told to.
type gathering struct {
	net.Conn
	hold bool
	held []byte
}

func (g *gathering) Write(b []byte) (int, error) {
	if !g.hold {
		return g.Conn.Write(b)
	}
	g.held = append(g.held, b...)
	return len(b), nil
}

// TestVisitorThatLeavesAFeedIsNoticed makes a visitor leave while a feed that sends
// something now and then is open.
func TestVisitorThatLeavesAFeedIsNoticed(t *testing.T) {
	left := make(chan struct{})
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		beat := time.NewTicker(50 * time.Millisecond)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				fmt.Fprint(w, "data: beat\n\n")
				_ = http.NewResponseController(w).Flush()
			case <-r.Context().Done():
				close(left)
				return
			}
		}
	}))
	conn, err := net.Dial("tcp", hostOf(t, s.http))
	if err != nil {
		t.Fatal(err)
	}
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n")
	if _, err := io.ReadFull(conn, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	select {
	case <-left:
	case <-time.After(patience):
		t.Error("the origin still feeds a visitor that has left")
	}
}
