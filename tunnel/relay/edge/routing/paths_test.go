package routing

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"adit/tunnel/relay/edge/message"
	"adit/tunnel/relay/edge/origin/origintest"
	"adit/tunnel/wire"
)

// FuzzStrip checks that the target of an HTTP/2 request equals that of HTTP/1.1, byte for
// byte, unless it begins with what would be taken for a host.
func FuzzStrip(f *testing.F) {
	for _, target := range []string{"/api", "/api?", "/api?q=%zz", "/%61pi/x%2F%41?a=[b]", "/api//x?q", "/api/\"x\"", "/api/%zz", "/api/../x", "/api/x:y"} {
		f.Add(target)
	}
	b := &Backend{path: "/api", prefix: "/api"}
	f.Fuzz(func(t *testing.T, asked string) {
		if _, ok := wire.MatchPath(b.path, asked); !ok {
			return
		}
		if target, ok := message.Target(&http.Request{Method: http.MethodGet, RequestURI: asked}); !ok || target != asked {
			return // it is asked for in another way
		}
		u, err := url.ParseRequestURI(asked)
		if err != nil {
			return // net/http refuses it
		}
		r := &http.Request{URL: u, Header: make(http.Header)}
		r.URL.Scheme, r.URL.Host = "http", "origin"
		b.Strip(r, asked)
		got, want := r.URL.RequestURI(), b.Target(asked)
		if strings.HasPrefix(want, "//") {
			want = "//"
			got = got[:min(len(got), 2)]
		}
		if got != want {
			t.Fatalf("%q: got %q, want %q", asked, got, want)
		}
	})
}

// TestTunnelsWithoutPathsCostNothing checks that requests to such tunnels do no work for
// paths.
func TestTunnelsWithoutPathsCostNothing(t *testing.T) {
	table := New(Config{})
	without, with := &Backend{Agent: new(Agent)}, &Backend{Agent: new(Agent), Paths: []wire.ClaimPath{{Path: "/api/v2"}, {Path: "/api", Strip: true}}}
	table.fork(without)
	table.fork(with)
	list := []*Backend{without}
	if n := testing.AllocsPerRun(100, func() { led(list, "/api/v2/x") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	list = []*Backend{with}
	for target, want := range map[string]*Backend{"/api/v2/x": with.forks[0], "/api/x": with.forks[1], "/x": with, "*": with, "": with} {
		if got := led(list, target); got[0] != want {
			t.Errorf("%s goes to %s", target, got[0].name())
		}
	}
	if list[0] != with {
		t.Error("the list itself was changed")
	}
	if n := testing.AllocsPerRun(100, func() { led(list, "/x") }); n != 0 {
		t.Errorf("%v allocations where no path leads", n)
	}
}

// TestPathIsOutOfTurnByItself checks that a path is out of turn while its origin is down, and
// no longer.
func TestPathIsOutOfTurnByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, session := newSharedSite(t), new(origintest.Session)
		session.Down.Store(true)
		b := &Backend{Key: "k", Agent: &Agent{ClientID: "c", Instance: "led", Session: session}, Paths: []wire.ClaimPath{{Path: "/api"}, {Path: "/x"}}}
		if _, err := s.table.Attach(s.face, b); err != nil {
			t.Fatal(err)
		}
		api := b.forks[0]
		s.table.TakeOut(s.ep, api)
		time.Sleep(time.Minute)
		if !api.out.Load() || b.out.Load() || b.forks[1].out.Load() {
			t.Errorf("out of turn: %v, the tunnel %v, its other path %v", api.out.Load(), b.out.Load(), b.forks[1].out.Load())
		}
		session.Down.Store(false)
		time.Sleep(time.Minute)
		if api.out.Load() {
			t.Error("it is out of turn, though its origin has been up for a minute")
		}
		session.Down.Store(true)
		s.table.TakeOut(s.ep, api)
		s.table.Detach(s.face, b) // and nobody probes it any more
		time.Sleep(time.Minute)
		if api.out.Load() {
			t.Error("it is probed, though its tunnel is served no more")
		}
	})
}

// BenchmarkLed finds where a request goes, for a tunnel without paths and for one
// with as many as there may be.
func BenchmarkLed(b *testing.B) {
	table := New(Config{})
	without, with := &Backend{Agent: new(Agent)}, &Backend{Agent: new(Agent)}
	for i := range wire.MaxPaths {
		with.Paths = append(with.Paths, wire.ClaimPath{Path: "/assets/v" + strconv.Itoa(10+i)})
	}
	table.fork(without)
	table.fork(with)
	for _, c := range []struct {
		name    string
		backend *Backend
		target  string
	}{{"without", without, "/assets/v41/x.js"}, {"last of 32", with, "/assets/v41/x.js"}, {"none of 32", with, "/assets/x.js"}} {
		b.Run(c.name, func(b *testing.B) {
			list := []*Backend{c.backend}
			b.ReportAllocs()
			for b.Loop() {
				led(list, c.target)
			}
		})
	}
}
