package relay

import (
	"crypto/tls"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"adit/tunnel/wire"
)

// TestVisitorWhoReadsNothingHoldsUpNoOtherByHints uses a visitor that reads nothing of a
// long answer, and on the same connection requests one that is preceded by hints. Answers
// for others, over the origin's only HTTP/2 connection, must not wait for that visitor.
func TestVisitorWhoReadsNothingHoldsUpNoOtherByHints(t *testing.T) {
	var sent atomic.Int64
	hinted := make(chan struct{}, 1)
	origin := startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			for piece := make([]byte, 64<<10); ; {
				n, err := w.Write(piece)
				if err != nil {
					return
				}
				sent.Add(int64(n))
			}
		case "/hints":
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.Header().Del("Link")
			hinted <- struct{}{}
		}
		io.WriteString(w, "ok")
	}))
	s := startSite(t, testConfig(t.TempDir()), text(""))
	url := s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTPS, Domain: "hints", HTTP2: true}, origin).PublicURL
	if status, body := get(t, s.visitor, url); status != 200 || body != "ok" {
		t.Fatalf("got %d %q", status, body)
	}
	c := dialHTTP2By(t, s, &tls.Config{RootCAs: s.roots(t), ServerName: "hints.relay.test", NextProtos: []string{"h2"}})
	defer c.Close()
	c.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30})
	c.framer.WriteWindowUpdate(0, 1<<30)
	ask := func(stream uint32, path string) {
		c.headers(stream, true, hpack.HeaderField{Name: ":method", Value: "GET"}, hpack.HeaderField{Name: ":scheme", Value: "https"},
			hpack.HeaderField{Name: ":authority", Value: "hints.relay.test"}, hpack.HeaderField{Name: ":path", Value: path})
	}
	ask(1, "/long")
	// Until nothing more is taken: the way to the visitor is full.
	for last, since, end := int64(0), time.Now(), time.Now().Add(patience); last == 0 || time.Since(since) < 500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if now := sent.Load(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(end) {
			t.Fatal("the long answer is taken on and on")
		}
	}
	ask(3, "/hints")
	<-hinted
	s.visitor.Timeout = patience
	for range 3 {
		if status, body := get(t, s.visitor, url); status != 200 || body != "ok" {
			t.Fatalf("another visitor got %d %q", status, body)
		}
	}
}

// TestHintsByHTTP2HaveAnEnd uses an origin that sends one hint after another and never an
// answer, as far as its visitor is told.
func TestHintsByHTTP2HaveAnEnd(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), text(""))
	g := s.agent.mustClaim("h2c", wire.Claim{Type: wire.TypeHTTPS, Domain: "hints", HTTP2: true}, startH2C(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			w.WriteHeader(http.StatusEarlyHints)
		}
	})))
	if status, _ := get(t, s.visitor, g.PublicURL); status != http.StatusBadGateway {
		t.Errorf("got status %d, want 502", status)
	}
}
