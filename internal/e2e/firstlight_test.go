package e2e

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"adit/internal/require"
)

func TestLocalServiceAnswersAtItsPublicURL(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	if s := agent.status(); s.Configured || s.Connected || s.State != "unconfigured" {
		t.Fatalf("a fresh daemon says %+v", s)
	}
	agent.configure(relay.client("laptop"))
	agent.awaitDTLS()
	s := agent.status()
	if s.State != "connected" || s.Transport != "dtls" || s.Relay != relay.tunnel {
		t.Errorf("status %+v, want connected over dtls to %s", s, relay.tunnel)
	}
	port := newOrigin(t)
	visitor := relay.visitor()
	for _, kind := range []string{"http", "https"} {
		made := agent.publish(kind, port, map[string]any{"domain": "first-" + kind})
		if want := kind + "://first-" + kind + ".localhost:"; !strings.HasPrefix(made.PublicURL, want) {
			t.Errorf("public_url is %s, want %s…", made.PublicURL, want)
		}
		code, body, err := fetch(visitor, made.PublicURL)
		if err != nil || code != http.StatusOK {
			t.Fatalf("%s: %d, %v", made.PublicURL, code, err)
		}
		host := strings.TrimPrefix(made.PublicURL, kind+"://")
		if want := fmt.Sprintf("host=%s for=127.0.0.1 proto=%s", strings.TrimSuffix(host, "/"), kind); body != want {
			t.Errorf("got %q, want %q", body, want)
		}
	}
	var endpoints struct {
		Items []struct {
			PublicURL   string `json:"public_url"`
			Connections struct{ Total int }
			Bytes       struct{ In, Out int64 }
		}
	}
	agent.ok(http.StatusOK, "GET", "/api/v1/endpoints", nil, &endpoints)
	if len(endpoints.Items) != 2 {
		t.Fatalf("endpoints %+v, want two", endpoints)
	}
	for _, e := range endpoints.Items {
		if e.Connections.Total == 0 || e.Bytes.Out == 0 {
			t.Errorf("endpoint %+v has counted nothing", e)
		}
	}
}

func TestFilesPassWhole(t *testing.T) {
	size := int64(48 << 20)
	if require.Strict() {
		size = 1 << 30
	}
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("https", newOrigin(t), map[string]any{"inspect": false})
	visitor := relay.visitor()
	want := patternSum(size)

	resp, err := visitor.Get(fmt.Sprintf("%s/file?size=%d", strings.TrimSuffix(made.PublicURL, "/"), size))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, resp.Body)
	resp.Body.Close()
	if err != nil || n != size || hexSum(sum) != want {
		t.Errorf("download: %d bytes with SHA-256 %s and error %v, want %d with %s", n, hexSum(sum), err, size, want)
	}

	resp, err = visitor.Post(strings.TrimSuffix(made.PublicURL, "/")+"/upload", "application/octet-stream", io.LimitReader(&pattern{}, size))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(body) != want {
		t.Errorf("upload: the origin saw %s, %v, want %s", body, err, want)
	}
}

func TestEventsArriveOneByOne(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("https", newOrigin(t), nil)
	visitor := relay.visitor()
	base := strings.TrimSuffix(made.PublicURL, "/")
	resp, err := visitor.Get(base + "/sse?n=5")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 5 {
		for lines.Scan() && lines.Text() == "" {
		}
		if want := fmt.Sprintf("data: %d", i); lines.Text() != want {
			t.Fatalf("got %q, want %q before the next was asked for (%v)", lines.Text(), want, lines.Err())
		}
		if _, _, err := fetch(visitor, base+"/next"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWebSocketEchoes(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	port := newOrigin(t)
	for _, kind := range []string{"http", "https"} {
		made := agent.publish(kind, port, nil)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		conn, _, err := websocket.Dial(ctx, strings.TrimSuffix(made.PublicURL, "/")+"/echo", &websocket.DialOptions{HTTPClient: relay.visitor()})
		if err != nil {
			t.Fatal(err)
		}
		conn.SetReadLimit(1 << 20)
		for _, size := range []int{1, 125, 126, 65535, 65536, 300000} {
			message := make([]byte, size)
			rand.Read(message)
			if err := conn.Write(ctx, websocket.MessageBinary, message); err != nil {
				t.Fatal(err)
			}
			_, got, err := conn.Read(ctx)
			if err != nil || string(got) != string(message) {
				t.Fatalf("%s, %d bytes: got %d back, %v", kind, size, len(got), err)
			}
		}
		conn.Close(websocket.StatusNormalClosure, "")
		cancel()
	}
}

// TestWebSocketIsInTheInspector has peers that compress what they say, and is
// looked at while it is open.
func TestWebSocketIsInTheInspector(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("https", newOrigin(t), nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.TrimSuffix(made.PublicURL, "/")+"/echo", &websocket.DialOptions{
		HTTPClient: relay.visitor(), CompressionMode: websocket.CompressionContextTakeover, CompressionThreshold: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	for range 3 {
		if err := conn.Write(ctx, websocket.MessageText, []byte(`{"hello":"world"}`)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := conn.Read(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var list struct{ Items []struct{ ID, State string } }
	agent.ok(http.StatusOK, "GET", "/api/v1/requests?q=echo", nil, &list)
	if len(list.Items) != 1 || list.Items[0].State != "open" {
		t.Fatalf("the inspector has %+v", list.Items)
	}
	var d struct {
		Messages []struct{ From, Type, Text string }
	}
	await(t, "all messages in the inspector", func() error {
		agent.ok(http.StatusOK, "GET", "/api/v1/requests/"+list.Items[0].ID, nil, &d)
		if len(d.Messages) != 6 {
			return fmt.Errorf("it has %d", len(d.Messages))
		}
		return nil
	})
	for i, m := range d.Messages {
		if from := []string{"visitor", "origin"}[i%2]; m.From != from || m.Type != "text" || m.Text != `{"hello":"world"}` {
			t.Errorf("message %d: got %+v, want what the %s said", i, m, from)
		}
	}
}

func TestFiveHundredVisitorsAtOnce(t *testing.T) {
	// So many handshakes at once take their time, and this is no test of its limit.
	relay := newRelay(t, "--config", relayConfig(t, "[limits]\nheader_time = \"2m\"\n"))
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("https", newOrigin(t), nil)
	visitor := relay.visitor()
	visitor.Transport.(*http.Transport).ForceAttemptHTTP2 = false // a connection for each
	visitor.Transport.(*http.Transport).TLSNextProto = noHTTP2
	const size = 64 << 10
	want := patternSum(size)
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			code, body, err := fetch(visitor, fmt.Sprintf("%s/file?size=%d", strings.TrimSuffix(made.PublicURL, "/"), size))
			sum := sha256.Sum256([]byte(body))
			if err != nil || code != http.StatusOK || fmt.Sprintf("%x", sum) != want {
				t.Errorf("visitor %d: %d, %d bytes, %v", i, code, len(body), err)
			}
		})
	}
	wg.Wait()
}

func TestSlowVisitorStopsNobody(t *testing.T) {
	relay := newRelay(t)
	agent := newAgent(t)
	agent.configure(relay.client("laptop"))
	made := agent.publish("tcp", newOrigin(t), nil)
	addr := strings.TrimPrefix(made.PublicURL, "tcp://")

	// The slow one asks for more than all buffers hold and reads 1 KiB now and then.
	slow, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprintf(slow, "GET /file?size=%d HTTP/1.1\r\nHost: x\r\n\r\n", 512<<20)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for buffer := make([]byte, 1024); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				slow.SetReadDeadline(time.Now().Add(patience))
				if _, err := io.ReadFull(slow, buffer); err != nil {
					t.Errorf("the slow visitor: %v", err)
					return
				}
			}
		}
	})
	const size = 64 << 20
	fast := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 3 {
		code, body, err := fetch(fast, fmt.Sprintf("http://%s/file?size=%d", addr, size))
		if err != nil || code != http.StatusOK || len(body) != size {
			t.Fatalf("beside a slow visitor: %d, %d bytes, %v", code, len(body), err)
		}
	}
}
