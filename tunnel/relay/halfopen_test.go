package relay

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/tunnel/wire"
)

// TestVisitorThatSendsNoMoreIsAnswered: `nc -N` and simple monitors end their
// side after the request.
func TestVisitorThatSendsNoMoreIsAnswered(t *testing.T) {
	const size = 4 << 20
	r := startRelayWith(t, Options{Config: testConfig(t.TempDir()), halfOpen: patience}) // for machines that have much to do
	agent := connect(t, r.client(t, "shop"), "i1")
	url := agent.mustClaim("http", wire.Claim{Type: wire.TypeHTTP, Domain: "shop"}, startOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, _ := io.ReadAll(r.Body)
		select {
		case <-r.Context().Done():
			t.Error("the request was given up")
		case <-time.After(200 * time.Millisecond): // well after the end has come to the edge
			fmt.Fprintf(w, "to %s: %s", asked, strings.Repeat("x", size))
		}
	}))).PublicURL
	for _, raw := range []string{
		"GET / HTTP/1.0\r\nHost: shop.relay.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: shop.relay.test\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: shop.relay.test\r\nContent-Length: 3\r\n\r\nabc",
		"POST / HTTP/1.1\r\nHost: shop.relay.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	} {
		conn, err := net.Dial("tcp", hostOf(t, url))
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(patience))
		io.WriteString(conn, raw)
		conn.(*net.TCPConn).CloseWrite()
		got, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(got), "HTTP/1.") || !strings.Contains(string(got[:20]), " 200 ") || len(got) < size {
			t.Errorf("%q: got %d bytes, %.20q, %v", raw, len(got), got, err)
		}
		conn.Close()
	}
	recorded(t, r.Relay, "the last", func(e wire.Access) bool { return e.Status == http.StatusOK })
}

// TestVisitorThatLeavesAFeedIsNoticed has a visitor go while a feed is open that
// says something now and then.
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
