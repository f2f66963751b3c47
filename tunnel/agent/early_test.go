package agent

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// TestEarlyAnswerReachesTheVisitor has an origin answer and close before it has
// read all that the visitor sends, as one does that refuses a large upload: the
// visitor gets the answer, and not only that something went wrong.
func TestEarlyAnswerReachesTheVisitor(t *testing.T) {
	const answer = "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlots"
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	port := service(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, answer) // closed with much unread: it resets
		}
	})
	tun := mustCreate(t, a, definition.Tunnel{Type: "http", LocalPort: port})
	body := strings.Repeat("x", 1<<20)
	for i := range 50 {
		s := r.mustVisit(tun.ID, wire.StreamHTTP)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _ = io.WriteString(s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n")
			for range 20 {
				if _, err := io.WriteString(s, body); err != nil {
					return
				}
			}
		})
		got := make([]byte, len(answer))
		n, err := io.ReadFull(s, got)
		if string(got[:n]) != answer {
			t.Errorf("visitor %d: got %q, %v", i, got[:n], err)
		}
		s.Reset()
		wg.Wait()
	}
}

// TestEarlyAnswerToAVisitorWhoPausesIsNotLost has the rest of an upload come long after
// the origin has refused it, and the answer take a while to the edge: that the
// origin has reset its connection must not overtake it.
func TestEarlyAnswerToAVisitorWhoPausesIsNotLost(t *testing.T) {
	const answer = "HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 4\r\n\r\nlots"
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	port := service(t, func(c net.Conn) {
		br := bufio.NewReaderSize(c, 256)
		if _, err := http.ReadRequest(br); err == nil {
			_, _ = br.Peek(256) // more has come, and stays unread: closing resets
			_, _ = io.WriteString(c, answer)
		}
	})
	tun := mustCreate(t, a, definition.Tunnel{Type: "http", LocalPort: port})
	s := r.mustVisit(tun.ID, wire.StreamHTTP)
	defer s.Reset()
	if _, err := io.WriteString(s, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n"+strings.Repeat("x", 1<<16)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the origin has answered", func() bool { return a.Endpoints()[0].Bytes.Out == int64(len(answer)) })
	<-time.After(200 * time.Millisecond) // the way to the edge: ten times what an origin that resets has to be noticed
	got := make([]byte, len(answer))
	if n, err := io.ReadFull(s, got); string(got[:n]) != answer {
		t.Errorf("got %q, %v", got[:n], err)
	}
}

// TestAnswerThatWasCutIsReset has an origin reset its connection within an answer
// that only the connection's end would end: it must not look whole.
func TestAnswerThatWasCutIsReset(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	port := service(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhal")
			_ = c.(*net.TCPConn).SetLinger(0)
		}
	})
	tun := mustCreate(t, a, definition.Tunnel{Type: "http", LocalPort: port})
	s := r.mustVisit(tun.ID, wire.StreamHTTP)
	defer s.Reset()
	if _, err := io.WriteString(s, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(s); err == nil {
		t.Errorf("got %q as if it were whole", got)
	}
}
