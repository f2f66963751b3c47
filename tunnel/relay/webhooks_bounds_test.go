package relay

import (
	"bufio"
	"bytes"
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

// TestUnsignedBodyIsNotAskedFor uses a visitor that waits for 100 Continue.
func TestUnsignedBodyIsNotAskedFor(t *testing.T) {
	s := hookSite(t, hookPolicy)
	host := strings.TrimPrefix(s.http, "http://")
	for signed, want := range map[string]string{"": "HTTP/1.1 401 ", "X-Hub-Signature-256: " + hubSignature([]byte("body")) + "\r\n": "HTTP/1.1 100 "} {
		c, err := net.Dial("tcp", hostOf(t, s.http))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "POST /hooks/github HTTP/1.1\r\nHost: "+host+"\r\nExpect: 100-continue\r\nContent-Length: 4\r\n"+signed+"\r\n")
		br := bufio.NewReader(c)
		line, err := br.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("signed %v: got %q, %v", signed != "", line, err)
		}
		if signed == "" {
			continue
		}
		io.WriteString(c, "body")
		br.ReadString('\n')
		if resp, err := http.ReadResponse(br, nil); err != nil || resp.StatusCode != 200 {
			t.Errorf("got %v, %v", resp, err)
		}
	}
}

// TestHeldBodiesAreBounded uses up the memory allowed for one address with bodies that
// never end, which then break off.
func TestHeldBodiesAreBounded(t *testing.T) {
	s := hookSite(t, hookPolicy)
	body, out := io.Pipe()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http+"/hooks/github", body)
	req.Header.Set("X-Hub-Signature-256", hubSignature(nil))
	done := make(chan error, 1)
	go func() {
		resp, err := s.visitor.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		done <- err
	}()
	const sent = 31<<20 + 1<<19
	if _, err := out.Write(make([]byte, sent)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all of it is held", func() bool { return s.holding() >= sent })
	next := func() *http.Response {
		b := make([]byte, 1<<20)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http+"/hooks/github", bytes.NewReader(b))
		req.Header.Set("X-Hub-Signature-256", hubSignature(b))
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	if resp := next(); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "5" {
		t.Errorf("status %d, Retry-After %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	recorded(t, s.Relay, "the second", func(e wire.Access) bool { return e.Refused == "webhooks_busy" })
	out.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-done; err == nil {
		t.Error("a body that broke off was answered")
	}
	eventually(t, "nothing is held", func() bool { return s.holding() == 0 })
	if resp := next(); resp.StatusCode != 200 {
		t.Errorf("status %d", resp.StatusCode)
	}
}

// TestStrangersKeepNoWebhookOut makes two addresses use up the memory allowed for a site
// with bodies that never end. The provider's body is still let in, and one of the others
// makes room.
func TestStrangersKeepNoWebhookOut(t *testing.T) {
	cfg := testConfig(t.TempDir())
	cfg.TrustedProxies = []string{"127.0.0.0/8"}
	s := startSite(t, cfg, text("origin"))
	s.setPolicy(t, "shop", hookPolicy)
	ask := func(from string, body io.Reader, signature string) (int, error) {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http+"/hooks/github", body)
		req.Header.Set("X-Hub-Signature-256", signature)
		req.Header.Set("X-Forwarded-For", from)
		resp, err := s.visitor.Do(req)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		return resp.StatusCode, nil
	}
	const sent = 31<<20 + 1<<19
	ended := make(chan int, 2)
	for i, from := range []string{"192.0.2.1", "192.0.2.2"} {
		body, out := io.Pipe()
		defer out.Close()
		go func() {
			status, _ := ask(from, body, hubSignature(nil))
			ended <- status
		}()
		if _, err := out.Write(make([]byte, sent)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "all of it is held", func() bool { return s.holding() >= int64(i+1)*sent })
	}
	signed := bytes.Repeat([]byte("signed"), 1<<18)
	if status, err := ask("192.0.2.3", bytes.NewReader(signed), hubSignature(signed)); status != 200 || err != nil {
		t.Errorf("a webhook of another address: status %d, %v", status, err)
	}
	eventually(t, "who made room is recorded, before the provider's or after", func() bool {
		return len(searched(s.Relay, func(e *wire.Access) bool {
			return e.Refused == "webhooks_busy" && e.Status == 503 && e.Visitor != "192.0.2.3"
		}, 1)) == 1
	})
	eventually(t, "its room is given back", func() bool { return s.holding() <= 33<<20 })
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("who makes room still sends")
	}
}

// TestSlowWebhookEnds uses a body that does not arrive, over each version of HTTP.
func TestSlowWebhookEnds(t *testing.T) {
	s := hookSiteWith(t, 300*time.Millisecond)
	for version, visitor := range map[string]*http.Client{"1": s.visitor, "2": s.visitor, "3": s.visitor3(t)} {
		base := s.https
		if version == "1" {
			base = s.http
		}
		body, out := io.Pipe()
		defer out.Close()
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/hooks/github", body)
		req.Header.Set("X-Hub-Signature-256", hubSignature(nil))
		go out.Write([]byte("some"))
		resp, err := visitor.Do(req)
		if err != nil {
			t.Fatalf("by HTTP/%s: %v", version, err)
		}
		resp.Body.Close()
		if resp.StatusCode != 408 {
			t.Errorf("by HTTP/%s: status %d", version, resp.StatusCode)
		}
		recorded(t, s.Relay, version, func(e wire.Access) bool { return e.Refused == "webhooks_body" && e.Status == 408 })
	}
}

// TestSlowWebhookOfKnownLengthEnds uses one over HTTP/1 with a known length: net/http
// would wait for the rest of it before it answers.
func TestSlowWebhookOfKnownLengthEnds(t *testing.T) {
	s := hookSiteWith(t, 300*time.Millisecond)
	start := time.Now()
	resp, _ := s.raw(t, "POST /hooks/github HTTP/1.1\r\nHost: "+strings.TrimPrefix(s.http, "http://")+"\r\nContent-Length: 10\r\nX-Hub-Signature-256: "+hubSignature(nil)+"\r\n\r\nsome")
	if took := time.Since(start); resp.StatusCode != 408 || !resp.Close || took > patience/2 {
		t.Errorf("status %d, closes %v, after %v", resp.StatusCode, resp.Close, took)
	}
}

// TestNextRequestHasItsOwnTime sends it on a connection whose webhook was in time.
func TestNextRequestHasItsOwnTime(t *testing.T) {
	s := hookSiteWith(t, 300*time.Millisecond)
	c, err := net.Dial("tcp", hostOf(t, s.http))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	br := bufio.NewReader(c)
	host := strings.TrimPrefix(s.http, "http://")
	ask := func(text string) {
		t.Helper()
		io.WriteString(c, text)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("got %v, %v", resp, err)
		}
		io.Copy(io.Discard, resp.Body)
	}
	ask("POST /hooks/github HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 4\r\nX-Hub-Signature-256: " + hubSignature([]byte("body")) + "\r\n\r\nbody")
	time.Sleep(400 * time.Millisecond) // longer than the webhook had
	ask("GET / HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Basic YW5uOnNlY3JldA==\r\n\r\n")
}

// TestRefusedWebhookLeavesItsConnection sends several webhooks on one connection.
func TestRefusedWebhookLeavesItsConnection(t *testing.T) {
	s := hookSite(t, hookPolicy)
	c, err := tls.Dial("tcp", hostOf(t, s.https), &tls.Config{RootCAs: s.roots(t), ServerName: "shop.relay.test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	br := bufio.NewReader(c)
	host := strings.TrimPrefix(s.https, "https://")
	for _, sig := range []string{"", hubSignature([]byte("other")), hubSignature([]byte("body")), "sha256=zz", hubSignature([]byte("body"))} {
		want := 401
		if sig == hubSignature([]byte("body")) {
			want = 200
		}
		fmt.Fprintf(c, "POST /hooks/github HTTP/1.1\r\nHost: %s\r\nContent-Length: 4\r\nX-Hub-Signature-256: %s\r\n\r\nbody", host, sig)
		resp, err := http.ReadResponse(br, nil)
		if err != nil || resp.StatusCode != want {
			t.Fatalf("%q: got %v, %v", sig, resp, err)
		}
		io.Copy(io.Discard, resp.Body)
	}
}
