package agent

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"adit/internal/freeport"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
)

func TestArchiveForAnInspectorThatIsOffIsRefused(t *testing.T) {
	a, err := New(Config{StateDir: t.TempDir(), Inspect: inspect.Limits{Memory: -1}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	_, err = a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[]}}`))
	wantCode(t, err, refusal.CodeInvalidParameter, "")
}

// TestARequestOfAnArchiveIsSaidToBelongToNoTunnel: it came through none, and where
// several carry HTTP nothing tells which is meant.
func TestARequestOfAnArchiveIsSaidToBelongToNoTunnel(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	if _, err := a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"http://a/"}}]}}`)); err != nil {
		t.Fatal(err)
	}
	port := freeport.Get(t)
	for n := range 3 {
		_, err := a.Replay(t.Context(), a.Requests(inspect.Filter{})[0].ID, inspect.Edit{})
		want := fmt.Sprintf("a request of an archive is sent to the one tunnel that carries HTTP, and there are %d", n)
		if n == 1 {
			want = fmt.Sprintf("nothing listens at the local address 127.0.0.1:%d", port)
		}
		if wantCode(t, err, refusal.CodeInvalidParameter, ""); err.Error() != want {
			t.Errorf("with %d tunnels: got %v, want %s", n, err, want)
		}
		mustCreate(t, a, definition.Tunnel{LocalPort: port})
	}
}

// Not every service ends its connection when it is asked to.
func TestReplayEndsWithItsAnswer(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	mustCreate(t, a, definition.Tunnel{LocalPort: service(t, func(c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			io.WriteString(c, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		io.Copy(io.Discard, c)
	})})
	_, err := a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"http://a/"}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second) // half of what a repeated request may take
	defer cancel()
	d, err := a.Replay(ctx, a.Requests(inspect.Filter{})[0].ID, inspect.Edit{})
	if err != nil || d.State != "done" || d.Status != http.StatusOK || d.Response.Body.Text != "ok" || ctx.Err() != nil {
		t.Errorf("got %+v, %v, %v", d, err, ctx.Err())
	}
}
