package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestRefusalsAreTyped(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   Error
	}{
		{400, `{"error":{"code":"invalid_parameter","message":"m","field":"local_port"}}`, Error{400, ErrorCodeInvalidParameter, "m", "local_port", 0}},
		{503, `{"error":{"code":"relay_unreachable","message":"m"}}`, Error{503, ErrorCodeRelayUnreachable, "m", "", 7 * time.Second}},
		{502, `<html>bad gateway</html>`, Error{502, "", "the answer 502 Bad Gateway is not of an adit daemon", "", 0}},
		{302, ``, Error{302, "", "the answer 302 Found is not of an adit daemon", "", 0}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if c.want.RetryAfter > 0 {
				w.Header().Set("Retry-After", "7")
			}
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.body)
		}))
		_, err := New(server.URL).Status(testContext(t))
		server.Close()
		var got *Error
		if !errors.As(err, &got) || *got != c.want {
			t.Errorf("status %d: got %#v, want %#v", c.status, err, c.want)
		}
	}
}

// nobodyAt returns an address that refuses connections, and at which nobody
// else can come to listen: it is the near end of a connection.
func nobodyAt(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	conn, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

func TestNobodyThereIsNotRunning(t *testing.T) {
	nobody := nobodyAt(t)
	_, err := New("http://" + nobody).Status(testContext(t))
	if !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v, want ErrNotRunning", err)
	}
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	if _, err := New("http://" + nobody).Status(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: got %v, want context.Canceled", err)
	}
}

// The tray makes a Client for each look at the daemon.
func TestClientsShareConnections(t *testing.T) {
	var made atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":{}}`) }))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			made.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	for range 20 {
		if _, err := New(s.URL).Status(testContext(t)); err != nil {
			t.Fatal(err)
		}
	}
	// net/http makes another where a request's end is not seen within 50 ms.
	if n := made.Load(); n > 10 {
		t.Errorf("20 clients, one after the other, made %d connections, want them to share one", n)
	}
}

// A daemon that is killed while it answers is one that has gone: who waits for it
// to come back goes on waiting.
func TestAnswerThatBreaksOffIsNotRunning(t *testing.T) {
	half := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"data":{"state":"conn`)
	}))
	defer half.Close()
	if _, err := New(half.URL).Status(testContext(t)); !errors.Is(err, ErrNotRunning) {
		t.Errorf("broken off: got %v, want ErrNotRunning", err)
	}
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data":7}`) }))
	defer wrong.Close()
	if _, err := New(wrong.URL).Status(testContext(t)); err == nil || errors.Is(err, ErrNotRunning) {
		t.Errorf("of another shape: got %v, want another error", err)
	}
}

func TestDiscoverAsksWhoIsNamed(t *testing.T) {
	ctx := testContext(t)
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			fmt.Fprint(w, `{"status":"ok","version":"v1"}`)
		}
	}))
	defer good.Close()
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `hello`) }))
	defer foreign.Close()
	write := func(text string) string {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "runtime.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	named := func(addr string) string {
		return write(`{"connect_addr":"` + strings.TrimPrefix(addr, "http://") + `","pid":7}`)
	}
	c, r, err := Discover(ctx, named(good.URL))
	if err != nil || c.BaseURL() != good.URL || r.PID != 7 {
		t.Errorf("got %v, %+v, %v, want the daemon", c, r, err)
	}
	for name, dir := range map[string]string{
		"no file":         t.TempDir(),
		"stale file":      named(nobodyAt(t)),
		"somebody else":   named(foreign.URL),
		"broken file":     write("{"),
		"without address": write("{}"),
	} {
		if _, _, err := Discover(ctx, dir); !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: got %v, want ErrNotRunning", name, err)
		}
	}
}

// A program that starts a daemon where none runs must not do so for ever because
// something else has its address, or because it hangs.
func TestProbeTellsWhatElseIsAtTheAddress(t *testing.T) {
	defer func(d time.Duration) { probeTimeout = d }(probeTimeout)
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"ok","version":"v1","service":"relay"}`)
	}))
	defer relay.Close()
	other := listenAnd(t, func(c net.Conn) {
		fmt.Fprint(c, "SSH-2.0-OpenSSH\r\n")
		_, _ = io.Copy(io.Discard, c)
	})
	mute := listenAnd(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	for name, c := range map[string]struct {
		url        string
		patience   time.Duration // long where an answer comes, on a machine that stands still too
		want, none error
	}{
		"a page":    {web.URL, 20 * time.Second, ErrForeign, ErrSilent},
		"a relay":   {relay.URL, 20 * time.Second, ErrForeign, ErrSilent},
		"no HTTP":   {"http://" + other, 20 * time.Second, ErrForeign, ErrSilent},
		"no answer": {"http://" + mute, 500 * time.Millisecond, ErrSilent, ErrForeign},
	} {
		probeTimeout = c.patience
		_, err := New(c.url).Probe(testContext(t))
		if !errors.Is(err, c.want) || !errors.Is(err, ErrNotRunning) || errors.Is(err, c.none) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
	probeTimeout = 20 * time.Second
	_, err := New("http://" + nobodyAt(t)).Probe(testContext(t))
	if !errors.Is(err, ErrNotRunning) || errors.Is(err, ErrForeign) || errors.Is(err, ErrSilent) {
		t.Errorf("nobody: got %v, want ErrNotRunning alone", err)
	}
}

// A daemon whose queue of connections is full is there; the dialler gives up first.
func TestProbeThatCannotConnectIsSilent(t *testing.T) {
	late := &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
	c := New("")
	c.http = &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, late },
	}}
	if _, err := c.Probe(testContext(t)); !errors.Is(err, ErrSilent) || !errors.Is(err, ErrNotRunning) {
		t.Errorf("got %v, want ErrSilent", err)
	}
}

// A daemon that answers the probe and then hangs must not hold a program for ever.
func TestCallsOfADaemonThatHangsEnd(t *testing.T) {
	defer func(d time.Duration) { answerTime = d }(answerTime)
	answerTime = 100 * time.Millisecond
	for name, begin := range map[string]string{"no answer": "", "half an answer": `{"data":`} {
		left := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if begin != "" {
				fmt.Fprint(w, begin)
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
			close(left)
		}))
		ctx := testContext(t)
		if _, err := New(server.URL).Status(ctx); !errors.Is(err, ErrSilent) || !errors.Is(err, ErrNotRunning) {
			t.Errorf("%s: got %v, want ErrSilent", name, err)
		}
		select {
		case <-left: // and the daemon learns that nobody waits
		case <-ctx.Done():
			t.Errorf("%s: the call was not ended", name)
		}
		server.Close()
	}
}

func TestCallsEndWithTheirCaller(t *testing.T) {
	mute := listenAnd(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := New("http://" + mute).Status(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrSilent) {
		t.Errorf("got %v, want the caller's own deadline", err)
	}
}

// listenAnd serves each connection by serve until the test ends.
func listenAnd(t *testing.T, serve func(net.Conn)) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(ctx, func() { c.Close() })
			wg.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() { cancel(); ln.Close(); wg.Wait() })
	return ln.Addr().String()
}

func TestEventsComeBackWhereTheyWere(t *testing.T) {
	ctx := testContext(t)
	var connections atomic.Int64
	var resumed []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := connections.Add(1)
		resumed = append(resumed, r.Header.Get("Last-Event-ID"))
		if n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":{"code":"too_many_streams","message":"m"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "retry: 1000\n\n: still here\n\nid: %d\nevent: log\ndata: {\"message\":\"m%d\"}\n\n", n*10, n)
		// The stream ends; an event that is not whole must not be given out.
		fmt.Fprintf(w, "id: 99\nevent: log\ndata: {\"mess")
	}))
	defer server.Close()
	var got []string
	var lost int
	for e, err := range New(server.URL).Events(ctx, "4") {
		if err != nil {
			lost++
			continue
		}
		var line LogEntry
		if err := e.Into(&line); err != nil {
			t.Fatal(err)
		}
		got = append(got, e.ID+" "+line.Message)
		if len(got) == 2 {
			break
		}
	}
	if want := []string{"10 m1", "30 m3"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if want := []string{"4", "10", "10"}; fmt.Sprint(resumed) != fmt.Sprint(want) {
		t.Errorf("resumed after %v, want %v", resumed, want)
	}
	if lost != 2 {
		t.Errorf("got %d lost connections told, want 2", lost)
	}
}

func TestEventsEndAtARefusal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"code":"unauthorized","message":"m"}}`)
	}))
	defer server.Close()
	var errs []error
	for _, err := range New(server.URL).Events(testContext(t), "") {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !IsCode(errs[0], ErrorCodeUnauthorized) {
		t.Errorf("got %v, want one refusal", errs)
	}
}

func TestEventsEndWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(testContext(t))
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "event: status\ndata: {}\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	for _, err := range New(server.URL).Events(ctx, "") {
		if err != nil {
			t.Errorf("got %v after the end", err)
		}
		cancel()
	}
}

func TestBearerIsShown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"data": map[string]any{"relay": r.Header.Get("Authorization") + "|" + r.UserAgent()}})
	}))
	defer server.Close()
	probed := "not"
	probe := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		probed = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"status":"ok","version":"v1"}`)
	}))
	defer probe.Close()
	if _, err := New(probe.URL, WithBearer("secret")).Health(testContext(t)); err != nil || probed != "" {
		t.Errorf("probe: got %v, and the token shown as %q, want it kept", err, probed)
	}
	st, err := New(server.URL, WithBearer("secret"), WithUserAgent("nas/1")).Status(testContext(t))
	if err != nil || st.Relay != "Bearer secret|nas/1" {
		t.Errorf("got %q, %v", st.Relay, err)
	}
}
