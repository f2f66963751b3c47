package localapi

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hold begins to hold t_1; leave ends it as a killed holder does.
func (r *running) hold(t *testing.T) (body io.Reader, leave func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "POST", r.url+"/api/v1/tunnels/t_1/hold", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := plainClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	line, err := bufio.NewReader(io.LimitReader(resp.Body, 8)).ReadString('\n')
	if resp.StatusCode != 200 || line != ": held\n" {
		t.Fatalf("got status %d, line %q and error %v, want 200 and : held", resp.StatusCode, line, err)
	}
	return resp.Body, cancel
}

func (r *running) wantHolds(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); r.agent.holds() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("got %d holds, want %d", r.agent.holds(), want)
		}
	}
}

func serveHolds(t *testing.T) (r *running, gone chan struct{}) {
	gone = make(chan struct{})
	r = serve(t, nil)
	r.agent.mu.Lock()
	r.agent.gone = gone
	r.agent.mu.Unlock()
	return r, gone
}

func TestHoldLastsAsLongAsItsHolder(t *testing.T) {
	r, _ := serveHolds(t)
	_, leaveFirst := r.hold(t)
	_, leaveSecond := r.hold(t)
	r.wantHolds(t, 2)
	leaveFirst()
	r.wantHolds(t, 1)
	leaveSecond()
	r.wantHolds(t, 0)
}

func TestHoldEndsWithItsTunnel(t *testing.T) {
	r, gone := serveHolds(t)
	body, _ := r.hold(t)
	close(gone)
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Errorf("got error %v, want the answer's end", err)
	}
	r.wantHolds(t, 0)
}

func TestHoldEndsCleanlyWithTheDaemon(t *testing.T) {
	r, _ := serveHolds(t)
	body, _ := r.hold(t)
	r.stop()
	if _, err := io.Copy(io.Discard, body); err != nil {
		t.Errorf("got error %v, want the answer's end", err)
	}
	r.wantHolds(t, 0)
}

func TestHoldsAreBounded(t *testing.T) {
	r, _ := serveHolds(t)
	r.streams.holds.open.Store(maxStreams)
	resp, err := plainClient.Post(r.url+"/api/v1/tunnels/t_1/hold", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") == "" || !strings.Contains(string(body), "too_many_streams") {
		t.Errorf("got status %d and %s, want 503 too_many_streams with Retry-After", resp.StatusCode, body)
	}
	r.wantHolds(t, 0)
	if got := r.streams.holds.open.Load(); got != maxStreams {
		t.Errorf("a refused stream is counted: got %d, want %d", got, maxStreams)
	}
}
