package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/inspect"
	"adit/tunnel/agent/refusal"
	"adit/tunnel/wire"
)

// TestPathsAreClaimed creates a tunnel with paths, changes them, and starts the agent
// anew.
func TestPathsAreClaimed(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeatureHeaders, wire.FeaturePaths)
	dir := t.TempDir()
	a, stop := configured(t, r, Config{StateDir: dir})
	web := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop", HostHeader: "inner.example", Paths: []definition.Path{
		{Path: "/api", LocalPort: 8080, Strip: true}, {Path: "/api/v2", LocalIP: "LOCALHOST", LocalPort: 8081, LocalScheme: "h2c", HostHeader: "v2.example"},
	}})
	check := func(what, want, claimed string) {
		t.Helper()
		got, _ := a.Tunnel(web.ID)
		b, err := json.Marshal(got.Paths)
		if err != nil || string(b) != want {
			t.Errorf("%s: got %s, %v; want %s", what, b, err, want)
		}
		c, _ := r.claim(web.ID)
		if c, _ := json.Marshal(c.Paths); string(c) != claimed {
			t.Errorf("%s: claimed %s, want %s", what, c, claimed)
		}
	}
	first := `[{"path":"/api/v2","local_ip":"localhost","local_port":8081,"local_scheme":"h2c","host_header":"v2.example","strip":false},` +
		`{"path":"/api","local_ip":"127.0.0.1","local_port":8080,"local_scheme":"http","host_header":"","strip":true}]`
	firstClaim := `[{"path":"/api/v2","host_header":"v2.example","http2":true,"scheme":"http","port":8081},{"path":"/api","strip":true,"scheme":"http","port":8080}]`
	check("created", first, firstClaim)
	// A patch has all of them, and [] leaves none.
	other, otherClaim := `[{"path":"/x","local_ip":"127.0.0.1","local_port":1,"local_scheme":"https","host_header":"","strip":false}]`, `[{"path":"/x","scheme":"https","port":1}]`
	for _, step := range []struct{ patch, want, claimed string }{
		{`{"local_port":81}`, first, firstClaim},
		{`{"paths":null}`, first, firstClaim},
		{`{"paths":[{"path":"/x","local_port":1,"local_scheme":"https"}]}`, other, otherClaim},
		{`{"type":"http"}`, other, otherClaim},
		{`{"paths":[]}`, `[]`, `null`},
		{`{"paths":[{"path":"/x","local_port":1,"local_scheme":"https"}]}`, other, otherClaim},
		{`{"type":"tls"}`, `[]`, `null`},
		{`{"type":"https","paths":[{"path":"/x","local_port":1,"local_scheme":"https"}]}`, other, otherClaim},
	} {
		var patch definition.Patch
		if err := json.Unmarshal([]byte(step.patch), &patch); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Change(t.Context(), web.ID, patch); err != nil {
			t.Errorf("%s: %v", step.patch, err)
		}
		check(step.patch, step.want, step.claimed)
	}
	stop()
	a, _ = startAgent(t, Config{StateDir: dir})
	wantTunnel(t, a, web.ID, TunnelRunning)
	check("after a restart", other, otherClaim)
}

func TestPathsThatAreRefused(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePaths)
	a, _ := configured(t, r, Config{Refuse: func(ip netip.Addr, port int) error {
		if port == 37271 {
			return errors.New("it is adit's own")
		}
		return nil
	}})
	a.origins.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("169.254.169.254")}, nil
	}
	web := mustCreate(t, a, definition.Tunnel{LocalPort: 80})
	for _, c := range []struct {
		kind string
		path definition.Path
		want string
	}{
		{"", definition.Path{Path: "/api/", LocalPort: 1}, `the path "/api/" must not end with /; without it, everything below is included as well`},
		{"", definition.Path{Path: "/api"}, "local_port of /api must be 1 to 65535"},
		{"", definition.Path{Path: "/api", LocalPort: 65536}, "local_port of /api must be 1 to 65535"},
		{"", definition.Path{Path: "/api", LocalPort: 1, LocalScheme: "ftp"}, "local_scheme of /api must be one of http, https, h2c"},
		{"", definition.Path{Path: "/api", LocalPort: 1, HostHeader: "a b"}, "host_header of /api must be a host name, with or without a port"},
		{"", definition.Path{Path: "/api", LocalPort: 1, LocalIP: "a b"}, `local_ip of /api: "a b" is neither an IP address nor a host name`},
		{"", definition.Path{Path: "/api", LocalPort: 37271}, "local_ip of /api: it is adit's own"},
		{"", definition.Path{Path: "/api", LocalPort: 80, LocalIP: "169.254.169.254"}, "local_ip of /api: 169.254.169.254 is an address at which clouds give out credentials; adit does not publish it"},
		{"", definition.Path{Path: "/api", LocalPort: 80, LocalIP: "evil.example"}, "local_ip of /api: evil.example is 169.254.169.254: 169.254.169.254 is an address at which clouds give out credentials; adit does not publish it"},
		{"tcp", definition.Path{Path: "/api", LocalPort: 1}, "is for http and https tunnels only"},
	} {
		var no *refusal.Error
		paths := []definition.Path{{Path: "/fine", LocalPort: 1}, c.path}
		if _, err := a.Create(t.Context(), definition.Tunnel{Type: c.kind, LocalPort: 80, Paths: paths}); !errors.As(err, &no) || no.Code != refusal.CodeInvalidParameter || no.Field != "paths" || no.Message != "paths: "+c.want {
			t.Errorf("create with %+v: got %v, want %s", c.path, err, c.want)
		}
		if c.kind != "" {
			continue
		}
		if _, err := a.Change(t.Context(), web.ID, definition.Patch{Paths: &paths}); !errors.As(err, &no) || no.Field != "paths" || no.Message != "paths: "+c.want {
			t.Errorf("change with %+v: got %v, want %s", c.path, err, c.want)
		}
	}
	if got, _ := a.Tunnel(web.ID); len(got.Paths) != 0 || len(a.Tunnels()) != 1 {
		t.Errorf("got %+v", a.Tunnels())
	}
}

// TestARelayThatKnowsNoPathsIsNotAsked: it would send all visitors to the tunnel's
// own service.
func TestARelayThatKnowsNoPathsIsNotAsked(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeatureHeaders)
	a, _ := configured(t, r, Config{})
	web := mustCreate(t, a, definition.Tunnel{LocalPort: 80, Domain: "shop"})
	const want = "the relay refused: the relay is too old to send paths to their own services; publish it without paths, or ask its operator to update it"
	paths := []definition.Path{{Path: "/api", LocalPort: 8080}}
	var no *refusal.Error
	if _, err := a.Change(t.Context(), web.ID, definition.Patch{Paths: &paths}); !errors.As(err, &no) || no.Code != refusal.CodeRelayRejected || no.Field != "paths" || no.Message != want {
		t.Errorf("change: got %#v", err)
	}
	if got, _ := a.Tunnel(web.ID); got.State != TunnelRunning || len(got.Paths) != 0 {
		t.Errorf("got %+v, want it as it was", got)
	}
	if c, _ := r.claim(web.ID); len(c.Paths) != 0 {
		t.Errorf("claimed %+v", c)
	}
}

// says is a local service that says its name and what it is asked for.
func says(t *testing.T, name string) int {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprintf(w, "%s %s %s", name, q.RequestURI, q.Header.Values("X-Forwarded-Prefix"))
	}))
	t.Cleanup(s.Close)
	return portOf(t, s)
}

// TestStreamsGoToThePathsService, are listed with the path, and are repeated there,
// as the service had them.
func TestStreamsGoToThePathsService(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePaths)
	a, _ := configured(t, r, Config{})
	paths := []definition.Path{{Path: "/api", LocalPort: says(t, "api"), Strip: true}, {Path: "/down", LocalPort: refusing(t)}, {Path: "/h2", LocalScheme: definition.SchemeH2C, LocalPort: http2Origin(t, false)}}
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: says(t, "own"), Paths: paths})
	ask := func(path, target string, header ...string) string {
		t.Helper()
		s, err := r.visitPath(tun.ID, wire.StreamHTTP, path)
		if err != nil {
			return err.Error()
		}
		t.Cleanup(s.Reset)
		_, body := edge(t, s, "GET", target, "", header...)
		return body
	}
	for _, c := range []struct{ path, target, want string }{
		{"", "/x", "own /x []"},
		{"/api", "/x?q", "api /x?q [/api]"},
		{"/down", "/down", fmt.Sprintf("nothing listens at the local address 127.0.0.1:%d", paths[1].LocalPort)},
		{"/gone", "/gone", "this tunnel has no path /gone"},
	} {
		var header []string
		if c.path == "/api" {
			header = []string{"X-Forwarded-Prefix", "/api"}
		}
		if got := ask(c.path, c.target, header...); got != c.want {
			t.Errorf("%s: got %q, want %q", c.path, got, c.want)
		}
	}
	var list []inspect.Summary
	eventually(t, "both are listed", func() bool {
		list = a.Requests(inspect.Filter{Status: http.StatusOK})
		return len(list) == 2 && list[0].State == "done" && list[1].State == "done"
	})
	if s := list[0]; s.TunnelPath != "/api" || s.Path != "/x?q" || list[1].TunnelPath != "" {
		t.Errorf("got %+v", list)
	}
	d, _ := a.Request(list[0].ID, false)
	if d.URL != "https://shop.relay.test/api/x?q" || !strings.HasSuffix(d.Curl, "'https://shop.relay.test/api/x?q'") || strings.Contains(strings.ToLower(d.Curl), "prefix") {
		t.Errorf("the visitor asked for %s, by %s", d.URL, d.Curl)
	}
	for i, want := range []string{"api /x?q [/api]", "own /x []"} {
		again, err := a.Replay(t.Context(), list[i].ID, inspect.Edit{})
		if err != nil || again.Response.Body.Text != want || again.TunnelPath != list[i].TunnelPath || again.URL != strings.Replace(d.URL, "/api/x?q", []string{"/api/x?q", "/x"}[i], 1) {
			t.Errorf("replayed: got %+v, %v; want %s", again, err, want)
		}
	}
	// What is imported is led as a visitor's request is.
	if _, err := a.ReadHAR(strings.NewReader(`{"log":{"version":"1.2","entries":[{"request":{"method":"GET","url":"https://shop.relay.test/api/x?q","headers":[{"name":"X_Forwarded-Prefix","value":"/evil"},{"name":"X-Kept","value":"a"}]}}]}}`)); err != nil {
		t.Fatal(err)
	}
	again, err := a.Replay(t.Context(), a.Requests(inspect.Filter{})[0].ID, inspect.Edit{})
	if err != nil || again.Response.Body.Text != "api /x?q [/api]" || strings.Contains(fmt.Sprint(again.Request.Headers), "evil") || !strings.Contains(fmt.Sprint(again.Request.Headers), "X-Kept") {
		t.Errorf("imported: got %+v, %+v, %v", again, again.Response, err)
	}
	if _, err := a.Change(t.Context(), tun.ID, definition.Patch{Paths: new([]definition.Path)}); err != nil {
		t.Fatal(err)
	}
	_, err = a.Replay(t.Context(), list[0].ID, inspect.Edit{})
	var no *refusal.Error
	if !errors.As(err, &no) || no.Code != refusal.CodeNotFound || no.Message != "the tunnel has no path /api any more" {
		t.Errorf("got %v", err)
	}
}

// TestRequestsByHTTP2GoToThePathsService as gRPC does.
func TestRequestsByHTTP2GoToThePathsService(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePaths)
	a, _ := configured(t, r, Config{})
	tun := mustCreate(t, a, definition.Tunnel{LocalPort: refusing(t), Paths: []definition.Path{{Path: "/h2", LocalScheme: definition.SchemeH2C, LocalPort: http2Origin(t, false)}}})
	transport := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) {
		return r.visitPath(tun.ID, wire.StreamRaw, "/h2")
	}}
	transport.Protocols.SetUnencryptedHTTP2(true)
	defer transport.CloseIdleConnections()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://shop.example.com/h2/x", strings.NewReader("hello"))
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(res.Body)
	res.Body.Close()
	const want = "HTTP/2.0 POST /h2/x hello"
	var list []inspect.Summary
	eventually(t, "it is listed", func() bool {
		list = a.Requests(inspect.Filter{})
		return len(list) == 1 && list[0].State == "done"
	})
	again, err := a.Replay(t.Context(), list[0].ID, inspect.Edit{})
	if string(body) != want || list[0].TunnelPath != "/h2" || err != nil || again.Response.Body.Text != want {
		t.Errorf("got %q, %+v, replayed %+v, %v", body, list[0], again.Response, err)
	}
}

// TestChangeOfPathsCutsWhatLeadsElsewhere, by request and in adit.toml, and nobody
// else.
func TestChangeOfPathsCutsWhatLeadsElsewhere(t *testing.T) {
	r := newFakeRelay(t)
	r.does(wire.FeaturePaths)
	a, _ := configured(t, r, Config{})
	waits := func() int { return service(t, func(c net.Conn) { io.Copy(c, c) }) }
	own, one, two, three := waits(), waits(), waits(), waits()
	before := []definition.Path{{Path: "/changes", LocalPort: one}, {Path: "/goes", LocalPort: one}, {Path: "/stays", LocalPort: one}}
	after := []definition.Path{{Path: "/comes", LocalPort: three}, {Path: "/changes", LocalPort: two}, {Path: "/stays", LocalPort: one, Strip: true}}
	want := definition.Tunnel{Type: "http", Name: "declared", LocalPort: own, Paths: before}
	if err := a.Declare(t.Context(), []definition.Tunnel{want}); err != nil {
		t.Fatal(err)
	}
	declared := declaredID("declared")
	wantTunnel(t, a, declared, TunnelRunning)
	made := mustCreate(t, a, definition.Tunnel{Type: "http", LocalPort: own, Paths: before}).ID
	for id, change := range map[string]func() error{
		made: func() error {
			_, err := a.Change(t.Context(), made, definition.Patch{Paths: &after})
			return err
		},
		declared: func() error {
			want.Paths = after
			return a.Declare(t.Context(), []definition.Tunnel{want})
		},
	} {
		streams := map[string]io.ReadWriter{}
		for _, path := range []string{"", "/changes", "/goes", "/stays"} {
			s, err := r.visitPath(id, wire.StreamRaw, path)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Reset)
			streams[path] = s
		}
		echo := func(path string) error {
			if _, err := streams[path].Write([]byte("x")); err != nil {
				return err
			}
			_, err := io.ReadFull(streams[path], make([]byte, 1))
			return err
		}
		for path := range streams {
			if err := echo(path); err != nil {
				t.Fatalf("%q before: %v", path, err)
			}
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for path, cut := range map[string]bool{"": false, "/stays": false, "/changes": true, "/goes": true} {
			if err := echo(path); (err != nil) != cut {
				t.Errorf("%q after: %v, want it cut: %v", path, err, cut)
			}
		}
		eventually(t, "the relay is told", func() bool {
			c, _ := r.claim(id)
			return reflect.DeepEqual(c.Paths, []wire.ClaimPath{
				{Path: "/changes", Scheme: "http", Port: two}, {Path: "/comes", Scheme: "http", Port: three}, {Path: "/stays", Strip: true, Scheme: "http", Port: one},
			})
		})
	}
}
