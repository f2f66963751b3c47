package agent

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"adit/internal/freeport"
	"adit/tunnel/agent/definition"
	"adit/tunnel/wire"
)

// TestAnEndpointSaysThatItsServiceIsDown: from the first visitor that was not served
// until the service is there again, whether or not another visitor comes.
func TestAnEndpointSaysThatItsServiceIsDown(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	r.does(wire.FeaturePaths)
	a, _ := configured(t, r, Config{})
	port := freeport.Get(t)
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: says(t, "own"), Paths: []definition.Path{{Path: "/api", LocalPort: port}}})
	says := func() string {
		list := a.Endpoints()
		if len(list) != 1 {
			t.Fatalf("the endpoints are %+v", list)
		}
		return list[0].Error
	}
	if got := says(); got != "" {
		t.Errorf("before anybody has tried it says %q", got)
	}
	feed := a.Subscribe(nil)
	tells := func(ok func(text string) bool) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for {
			e, err := feed.Next(ctx)
			if err != nil {
				t.Fatal("the feed does not tell of it")
			}
			if changed, is := e.Data.(EndpointEvent); is && ok(changed.Endpoint.Error) {
				return
			}
		}
	}
	if _, err := r.visitPath(tun.ID, wire.StreamHTTP, "/api"); err == nil {
		t.Fatal("a service that is down was reached")
	}
	if got, want := says(), fmt.Sprintf("/api: nothing listens at the local address 127.0.0.1:%d", port); got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	if s, err := r.visitPath(tun.ID, wire.StreamHTTP, ""); err != nil {
		t.Error(err)
	} else {
		s.Reset()
	}
	if got := says(); got == "" {
		t.Error("a visitor of another service is taken for one of this")
	}
	tells(func(text string) bool { return strings.Contains(text, "nothing listens") })
	ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	eventually(t, "all is well without a visitor", func() bool { return says() == "" })
	tells(func(text string) bool { return text == "" })
}

// TestAServiceIsLookedForWhenItsTunnelIsStarted: a stopped tunnel's is left alone, and
// may be there again by the time that it is started.
func TestAServiceIsLookedForWhenItsTunnelIsStarted(t *testing.T) {
	t.Parallel() // most of it is waiting
	r := newFakeRelay(t)
	a, _ := configured(t, r, Config{})
	one, other := freeport.Get(t), freeport.Get(t)
	stopped := mustCreate(t, a, definition.Tunnel{LocalPort: one})
	goesOn := mustCreate(t, a, definition.Tunnel{LocalPort: other})
	says := func(id string) string {
		list := a.Endpoints()
		i := slices.IndexFunc(list, func(e Endpoint) bool { return e.TunnelID == id })
		if i < 0 {
			t.Fatalf("the endpoints are %+v, without %s", list, id)
		}
		return list[i].Error
	}
	listen := func(port int) {
		ln, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
	}
	for _, id := range []string{stopped.ID, goesOn.ID} {
		if _, err := r.visit(id, wire.StreamHTTP); err == nil || says(id) == "" {
			t.Fatalf("a service that is down was reached: %v", err)
		}
	}
	if _, err := a.StopTunnel(t.Context(), stopped.ID); err != nil {
		t.Fatal(err)
	}
	listen(other)
	eventually(t, "nothing is looked for any more", func() bool { return says(goesOn.ID) == "" })
	listen(one)
	if _, err := a.StartTunnel(t.Context(), stopped.ID); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is well without a visitor", func() bool { return says(stopped.ID) == "" })
}
