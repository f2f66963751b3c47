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
	"adit/tunnel/wire"
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

// TestClearedRequestsAreTold: other pages show them, too.
func TestClearedRequestsAreTold(t *testing.T) {
	a, err := New(Config{StateDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"http://a/"}}]}}`)); err != nil {
		t.Fatal(err)
	}
	events := a.Subscribe(nil)
	a.ClearRequests()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if e, err := events.Next(ctx); err != nil || e.Type != EventCleared || e.Data != any(ClearedEvent{Requests: 1}) {
		t.Errorf("got %+v, %v", e, err)
	}
}

// TestARequestOfAnArchiveIsSaidToBelongToNoTunnel: it came through none, and where
// several carry HTTP its address may be that of none of them.
func TestARequestOfAnArchiveIsSaidToBelongToNoTunnel(t *testing.T) {
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	if _, err := a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"http://a/"}}]}}`)); err != nil {
		t.Fatal(err)
	}
	port := freeport.Get(t)
	for n := range 3 {
		_, err := a.Replay(t.Context(), a.Requests(inspect.Filter{})[0].ID, inspect.Edit{})
		want := []string{
			"a request of an archive is sent to a tunnel that carries HTTP, and there is none",
			fmt.Sprintf("nothing listens at the local address 127.0.0.1:%d", port),
			`a request of an archive is sent to the tunnel of its Host, and 0 of the 2 tunnels that carry HTTP are at "a"; give it the Host of one`,
		}[n]
		if wantCode(t, err, refusal.CodeInvalidParameter, ""); err.Error() != want {
			t.Errorf("with %d tunnels: got %v, want %s", n, err, want)
		}
		mustCreate(t, a, definition.Tunnel{LocalPort: port})
	}
}

// TestARequestOfAnArchiveGoesToTheTunnelOfItsHost: as a visitor's who asks for its address.
func TestARequestOfAnArchiveGoesToTheTunnelOfItsHost(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeatureWildcards)
	a, _ := configured(t, r, Config{})
	tunnels := []definition.Tunnel{
		{Name: "shop", Domain: "shop"},
		{Name: "plain", Domain: "shop", Type: "http"},
		{Name: "blog", Domain: "blog"},
		{Name: "all", Domain: "*.shop.relay.test"},
		{Name: "own", Domain: "own.shop.relay.test"},
		{Name: "one", Domain: "twice"},
		{Name: "other", Domain: "twice"},
	}
	for _, want := range tunnels {
		want.LocalPort = service(t, func(c net.Conn) {
			if q, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n%s %s", want.Name, q.Host)
			}
			c.Close()
		})
		mustCreate(t, a, want)
	}
	replay := func(address string, edit inspect.Edit) string {
		t.Helper()
		if _, err := a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"` + address + `"}}]}}`)); err != nil {
			t.Fatal(err)
		}
		d, err := a.Replay(t.Context(), a.Requests(inspect.Filter{})[0].ID, edit)
		if err != nil {
			return err.Error()
		}
		return d.Response.Body.Text
	}
	for address, want := range map[string]string{
		"https://shop.relay.test/":       "shop shop.relay.test",
		"HTTP://Shop.Relay.Test.:8080/x": "plain Shop.Relay.Test.:8080",
		"http://blog.relay.test/":        "blog blog.relay.test",
		"https://a.shop.relay.test/":     "all a.shop.relay.test",
		"http://own.shop.relay.test/":    "own own.shop.relay.test",
		"https://relay.test/":            `a request of an archive is sent to the tunnel of its Host, and 0 of the 7 tunnels that carry HTTP are at "relay.test"; give it the Host of one`,
		"https://twice.relay.test/":      `a request of an archive is sent to the tunnel of its Host, and 2 of the 7 tunnels that carry HTTP are at "twice.relay.test"; give it the Host of one`,
	} {
		if got := replay(address, inspect.Edit{}); got != want {
			t.Errorf("%s: got %s, want %s", address, got, want)
		}
	}
	other := inspect.Edit{Headers: []inspect.Header{{Name: "host", Value: "blog.relay.test"}}}
	if got := replay("https://elsewhere.example/", other); got != "blog blog.relay.test" {
		t.Errorf("with another Host: got %s", got)
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
