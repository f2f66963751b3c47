package agent

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// http2Origin is a local service that speaks HTTP/2 alone, over TLS or without. It
// says what it was asked, and how, with a trailer.
func http2Origin(t *testing.T, secure bool) int {
	t.Helper()
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Trailer", "Grpc-Status")
		fmt.Fprintf(w, "%s %s %s %s", r.Proto, r.Method, r.URL, body)
		w.Header().Set("Grpc-Status", "7")
	}))
	s.Config.Protocols = new(http.Protocols)
	if secure {
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{NextProtos: []string{"h2"}}
		s.Config.Protocols.SetHTTP2(true)
		s.StartTLS()
	} else {
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
	}
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// askHTTP2 sends a request through a tunnel as the edge does, and returns what is
// answered.
func (r *fakeRelay) askHTTP2(key string, req *http.Request) string {
	r.t.Helper()
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) {
		return r.visit(key, wire.StreamRaw)
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return string(body)
}

// TestRequestsByHTTP2AreListedAndReplayed has a service that speaks HTTP/2 by
// choice, and one that a gRPC client asks.
func TestRequestsByHTTP2AreListedAndReplayed(t *testing.T) {
	for scheme, kind := range map[string]string{definition.SchemeH2C: "text/plain", definition.SchemeHTTPS: "application/grpc"} {
		t.Run(scheme, func(t *testing.T) {
			r := newFakeRelay(t)
			a, _ := configured(t, r, Config{})
			tun := mustCreate(t, a, definition.Tunnel{LocalScheme: scheme, LocalPort: http2Origin(t, scheme == definition.SchemeHTTPS)})
			for i := range 2 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://shop.example.com/%d", i), strings.NewReader("hello"))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", kind)
				req.Header.Set("User-Agent", "") // none
				if got, want := r.askHTTP2(tun.ID, req), fmt.Sprintf("HTTP/2.0 POST /%d hello", i); got != want {
					t.Fatalf("got %q, want %q", got, want)
				}
			}
			var list []inspect.Summary
			eventually(t, "both are listed", func() bool {
				list = a.Requests(inspect.Filter{})
				return len(list) == 2 && list[0].State == "done" && list[1].State == "done"
			})
			if s := list[1]; s.Kind != inspect.KindHTTP || s.Method != http.MethodPost || s.Path != "/0" || s.Status != http.StatusOK || s.Host != "shop.example.com" {
				t.Errorf("got %+v", s)
			}
			text := "bye"
			d, err := a.Replay(t.Context(), list[1].ID, inspect.Edit{Path: "/again", Body: &text})
			if err != nil {
				t.Fatal(err)
			}
			if d.State != "done" || d.ReplayOf != list[1].ID || d.Response == nil || d.Response.Body.Text != "HTTP/2.0 POST /again bye" {
				t.Fatalf("got %+v with %+v", d, d.Response)
			}
			if sent := fmt.Sprint(d.Request.Headers); strings.Contains(sent, "user-agent") {
				t.Errorf("more is sent than the visitor did: %s", sent)
			}
			if h := d.Response.Headers[len(d.Response.Headers)-1]; h.Name != "grpc-status" || h.Value != "7" {
				t.Errorf("got %+v, want the trailer at the end", d.Response.Headers)
			}
		})
	}
}

// TestReplayByHTTP2ToAServiceThatDoesNotSpeakIt says so and does not wait.
func TestReplayByHTTP2ToAServiceThatDoesNotSpeakIt(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	mustCreate(t, a, definition.Tunnel{LocalScheme: definition.SchemeH2C, LocalPort: service(t, func(c net.Conn) {
		io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		io.Copy(io.Discard, c)
	})})
	if _, err := a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"http://a/"}}]}}`)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // half of what a repeated request may take
	defer cancel()
	_, err := a.Replay(ctx, a.Requests(inspect.Filter{})[0].ID, inspect.Edit{})
	wantCode(t, err, refusal.CodeInvalidParameter, "")
	if err == nil || !strings.Contains(err.Error(), "does not answer by HTTP/2") || ctx.Err() != nil {
		t.Errorf("got %v, %v", err, ctx.Err())
	}
}
