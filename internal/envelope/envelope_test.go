package envelope

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

// serve runs handler until the test ends, and returns a connection to it.
func serve(t *testing.T, handler http.HandlerFunc) (net.Conn, *bufio.Reader) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler, MaxHeaderBytes: 4 << 10, ReadHeaderTimeout: 20 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- Serve(server, ln, http.Header{"X-Frame-Options": {"DENY"}}) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-ended; err != http.ErrServerClosed {
			t.Errorf("Serve returned %v, want %v", err, http.ErrServerClosed)
		}
	})
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// answer sends text as it is and reads one answer.
func answer(t *testing.T, conn net.Conn, from *bufio.Reader, text string) (*http.Response, string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatalf("answer to %.60q: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

const good = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"

// refusals are requests that no handler sees.
var refusals = map[string]struct {
	text    string
	status  int
	code    string
	message string
}{
	"no Host":          {"GET / HTTP/1.1\r\n\r\n", 400, "invalid_parameter", "missing required Host header"},
	"two Hosts":        {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "invalid_parameter", "cannot be read"},
	"malformed Host":   {"GET / HTTP/1.1\r\nHost: a\"b\r\n\r\n", 400, "invalid_parameter", "malformed Host header"},
	"bad escape":       {"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "invalid_parameter", "cannot be read"},
	"no request":       {"\x16\x03\x01 hello\r\n\r\n", 400, "invalid_parameter", "cannot be read"},
	"large headers":    {"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + strings.Repeat("x", 20<<10) + "\r\n\r\n", 431, "payload_too_large", "headers"},
	"unknown encoding": {"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "invalid_parameter", "Transfer-Encoding"},
	"HTTP/3.0":         {"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n", 505, "invalid_parameter", "HTTP/1.1"},
	"unknown Expect":   {"GET / HTTP/1.1\r\nHost: localhost\r\nExpect: tea\r\n\r\n", 417, "invalid_parameter", "Expect"},
}

func TestRefusalsBeforeAnyHandlerAreTheEnvelope(t *testing.T) {
	for name, want := range refusals {
		for _, kept := range []bool{false, true} {
			conn, from := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "good") })
			if kept {
				if resp, body := answer(t, conn, from, good); resp.StatusCode != 200 || body != "good" {
					t.Fatalf("%s: got %d %q before, want 200 good", name, resp.StatusCode, body)
				}
			}
			resp, body := answer(t, conn, from, want.text)
			var got struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal([]byte(body), &got); err != nil {
				t.Errorf("%s, kept %t: got %q: %v", name, kept, body, err)
			}
			if resp.StatusCode != want.status || got.Error.Code != want.code || !strings.Contains(got.Error.Message, want.message) {
				t.Errorf("%s, kept %t: got %d %s, want %d %s and %q", name, kept, resp.StatusCode, body, want.status, want.code, want.message)
			}
			for header, value := range map[string]string{"Content-Type": "application/json; charset=utf-8", "X-Frame-Options": "DENY"} {
				if got := resp.Header.Get(header); got != value {
					t.Errorf("%s, kept %t: got %s %q, want %q", name, kept, header, got, value)
				}
			}
			if _, err := http.ParseTime(resp.Header.Get("Date")); err != nil || !resp.Close {
				t.Errorf("%s, kept %t: got Date %q and close %t, want both", name, kept, resp.Header.Get("Date"), resp.Close)
			}
			if rest, err := io.ReadAll(from); err == nil && len(rest) > 0 {
				t.Errorf("%s, kept %t: got %q after the answer, want the end", name, kept, rest)
			}
		}
	}
}

// TestWhatAHandlerWritesIsLeftAlone: also what looks like a refusal of
// net/http's to the byte, is written by itself, and begins an answer.
func TestWhatAHandlerWritesIsLeftAlone(t *testing.T) {
	const refusal = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"
	t.Run("body", func(t *testing.T) {
		conn, from := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Length"] = []string{strconv.Itoa(len(refusal))}
			http.NewResponseController(w).Flush() // what follows is a Write of its own
			io.WriteString(w, refusal)
		})
		for range 2 {
			if resp, body := answer(t, conn, from, good); resp.StatusCode != 200 || body != refusal {
				t.Errorf("got %d %q, want 200 %q", resp.StatusCode, body, refusal)
			}
		}
	})
	t.Run("status", func(t *testing.T) {
		conn, from := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = nil
			http.Error(w, "mine", http.StatusBadRequest)
		})
		for range 2 {
			if resp, body := answer(t, conn, from, good); resp.StatusCode != 400 || body != "mine\n" {
				t.Errorf("got %d %q, want 400 mine", resp.StatusCode, body)
			}
		}
	})
	t.Run("hijacked", func(t *testing.T) {
		conn, from := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			taken, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer taken.Close()
			io.WriteString(taken, refusal)
		})
		if resp, body := answer(t, conn, from, good); resp.StatusCode != 400 || body != "400 Bad Request" {
			t.Errorf("got %d %q, want what was written", resp.StatusCode, body)
		}
	})
	t.Run("continue", func(t *testing.T) {
		conn, from := serve(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) })
		request := "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n"
		for range 2 {
			if resp, _ := answer(t, conn, from, request); resp.StatusCode != 100 {
				t.Errorf("got %d, want 100", resp.StatusCode)
			}
			if resp, body := answer(t, conn, from, "body"); resp.StatusCode != 200 || body != "body" {
				t.Errorf("got %d %q, want 200 body", resp.StatusCode, body)
			}
		}
	})
}

// TestHooksOfTheServerAreKept: a server's own are called with the connection
// that its handlers' contexts were made with.
func TestHooksOfTheServerAreKept(t *testing.T) {
	type key struct{}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	states := make(chan net.Conn, 8)
	server := &http.Server{
		ReadHeaderTimeout: 20 * time.Second,
		ConnState: func(c net.Conn, s http.ConnState) {
			if s == http.StateNew {
				states <- c
			}
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got, want := r.Context().Value(key{}), <-states; got != want {
				t.Errorf("got connection %v in the context, want %v of ConnState", got, want)
			}
		}),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, key{}, c) },
	}
	ended := make(chan error, 1)
	go func() { ended <- Serve(server, ln, nil) }()
	resp, err := http.Get("http://" + ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	server.Close()
	<-ended
}

// TestConnectionsEndAsTheirServerWants: in one direction alone, so that who still sends gets
// to read the answer, or cut.
func TestConnectionsEndAsTheirServerWants(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	pair := func() (client, server net.Conn) {
		t.Helper()
		client, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		if server, err = (listener{ln, nil}).Accept(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		for _, c := range []net.Conn{client, server} {
			if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		return client, server
	}
	client, server := pair()
	if err := server.(*conn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end of what the server sends", err)
	}
	if _, err := io.WriteString(client, "rest"); err != nil {
		t.Error(err)
	}
	if _, err := io.ReadFull(server, make([]byte, len("rest"))); err != nil {
		t.Errorf("what the client still sends: %v", err)
	}
	client, server = pair()
	if err := server.(*conn).SetLinger(0); err != nil {
		t.Fatal(err)
	}
	server.Close()
	if _, err := client.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("got %v, want a connection that is cut", err)
	}
}
