package service

import (
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"adit/internal/config"
	"adit/tunnel/agent"
	"adit/tunnel/agent/definition"
	"adit/tunnel/agent/origin"
)

// A name that is another tunnel's is free once that tunnel is gone: nobody need
// touch the file for it.
func TestDeclaredTunnelTakesItsNameOnceItIsFree(t *testing.T) {
	conf, state := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(conf, "adit.toml"):     "[[tunnel]]\nname = \"shop\"\nlocal_port = 8000\n",
		filepath.Join(state, "tunnels.json"): `{"version":1,"tunnels":[{"id":"tun_1","created_at":"2026-01-01T00:00:00Z","spec":{"name":"shop","local_port":80}}]}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	url, _ := startDaemon(t, Daemon{ConfigDir: conf, StateDir: state})
	var config struct {
		Data struct{ Error *struct{ Key string } }
	}
	var list struct {
		Data struct {
			Items []struct {
				Name     string
				Declared bool
			}
		}
	}
	eventually := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never: %s; got mistake %+v, tunnels %+v", what, config.Data.Error, list.Data.Items)
			}
		}
	}
	mistaken := func() bool {
		config.Data.Error = nil
		ask(t, "GET", url+"/api/v1/config", nil, &config)
		return config.Data.Error != nil
	}
	eventually("the name is told to be another's", mistaken)
	eventually("the tunnel of that name is gone", func() bool {
		return ask(t, "DELETE", url+"/api/v1/tunnels/tun_1", nil, nil) == http.StatusNoContent
	})
	eventually("the declared tunnel is there", func() bool {
		list.Data.Items = nil
		ask(t, "GET", url+"/api/v1/tunnels", nil, &list)
		return len(list.Data.Items) == 1 && list.Data.Items[0].Declared
	})
	eventually("the mistake is gone", func() bool { return !mistaken() })
}

// TestAFileThatWasMendedStaysInForce has a name become free that only the file before asked
// for: that file is not applied for it.
func TestAFileThatWasMendedStaysInForce(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	state := t.TempDir()
	const stored = `{"version":1,"tunnels":[{"id":"tun_1","created_at":"2026-01-01T00:00:00Z","spec":{"name":"shop","local_port":80}}]}`
	if err := os.WriteFile(filepath.Join(state, "tunnels.json"), []byte(stored), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{StateDir: state, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	c := &declared{agent: a, log: log, clash: make(chan struct{}, 1)}
	write := func(name string) {
		t.Helper()
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "adit.toml"), fmt.Appendf(nil, "[[tunnel]]\nname = %q\nlocal_port = 8000\n", name), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := config.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		c.apply(t.Context(), file, nil)
	}
	has := func(when string, resolved bool, want ...string) {
		t.Helper()
		if got := c.resolved(t.Context()); got != resolved {
			t.Errorf("%s: resolved: %v", when, got)
		}
		var got []string
		for _, of := range a.Tunnels() {
			got = append(got, of.Name)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: the tunnels are %q, want %q", when, got, want)
		}
	}
	write("shop")
	has("with the name of another", false, "shop")
	write("mended")
	has("mended", true, "mended", "shop")
	if err := a.DeleteTunnel(t.Context(), "tun_1"); err != nil {
		t.Fatal(err)
	}
	has("when the name is free", true, "mended")
}

// wantDeclared returns the tunnel that a file with text in its table declares, which must
// have that mistake; empty: none.
func wantDeclared(t *testing.T, text, mistake string) definition.Tunnel {
	t.Helper()
	file, err := config.Parse("adit.toml", []byte("[[tunnel]]\nname = \"shop\"\nlocal_port = 8000\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	specs, tables, err := declaredSpecs(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := declareMistake(file, tables, checkSpecs(specs))
	if (got == nil) != (mistake == "") || got != nil && got.Error() != mistake {
		t.Errorf("%q: got %v, want %s", text, got, mistake)
	}
	return specs[0]
}

// Headers of a declared tunnel reach the agent, and a mistake in them is told with
// its place in the file.
func TestDeclaredTunnelChangesHeaders(t *testing.T) {
	for text, want := range map[string]string{
		"request_headers = { x-env = \"prod\", Cookie = \"\" }\n[tunnel.response_headers]\nServer = \"\"\n": "",
		"\nrequest_headers = { Host = \"a\" }\n":                                                            "adit.toml:5: tunnel[0].request_headers: Host is not changed here; use host_header",
		"response_headers = { \"X Env\" = \"a\" }\n":                                                        "adit.toml:4: tunnel[0].response_headers: \"X Env\" is not the name of a header field",
		"request_headers = { X-Env = \"a\", x-env = \"b\" }":                                                "adit.toml:4: tunnel[0].request_headers: X-Env is given twice",
		"request_headers = { X-Env = \"geheim\\u0007\" }":                                                   "adit.toml:4: tunnel[0].request_headers: the value of X-Env has control characters",
	} {
		got := wantDeclared(t, text, want)
		if want == "" && (got.RequestHeaders != definition.Headers(map[string]string{"X-Env": "prod", "Cookie": ""}) || got.ResponseHeaders != definition.Headers(map[string]string{"Server": ""})) {
			t.Errorf("got %+v", got)
		}
	}
}

// Paths of a declared tunnel reach the agent, and a mistake in them is told with its
// place in the file.
func TestDeclaredTunnelHasPaths(t *testing.T) {
	for text, want := range map[string]string{
		"[[tunnel.paths]]\npath = \"/api\"\nlocal_port = 8080\nstrip = true\n": "",
		"\n[[tunnel.paths]]\npath = \"api\"\nlocal_port = 8080\n":              `adit.toml:5: tunnel[0].paths: the path "api" must begin with /`,
		"paths = [{ path = \"/api\" }]\n":                                      "adit.toml:4: tunnel[0].paths: local_port of /api must be 1 to 65535",
		"type = \"tcp\"\n[[tunnel.paths]]\npath = \"/a\"\nlocal_port = 1\n":    "adit.toml:5: tunnel[0].paths: is for http and https tunnels only",
	} {
		got := wantDeclared(t, text, want)
		if p := got.Paths; want == "" && (len(p) != 1 || p[0] != definition.Path{Path: "/api", LocalPort: 8080, Strip: true}) {
			t.Errorf("got %+v", p)
		}
	}
}

// Visits of the file reach the agent, and a mistake in them is told with its place.
func TestDeclaredVisits(t *testing.T) {
	const good = "[[visit]]\ntunnel = \"nas/ssh\"\nlisten = \"127.0.0.1:2222\"\n"
	for text, want := range map[string]string{
		good: "",
		good + "[[visit]]\ntunnel = \"nas\"\nlisten = \"2223\"\n":                     "adit.toml:5: visit[1].tunnel: a private tunnel is called CLIENT/NAME, such as nas/ssh",
		good + "[[visit]]\ntype = \"dns\"\ntunnel = \"nas/dns\"\nlisten = \"2223\"\n": "adit.toml:5: visit[1].type: must be tcp or udp, the same type as the tunnel",
		good + "[[visit]]\nlisten = \"2222\"\ntunnel = \"nas/rdp\"\n":                 "adit.toml:5: visit[1].listen: another visit already listens on 127.0.0.1:2222",
		"[[visit]]\ntunnel = \"nas/ssh\"\nlisten = \"192.168.1.2:22\"\n":              "adit.toml:3: visit[0].listen: must be a loopback address, which other machines cannot reach, such as 127.0.0.1:2222",
		"[[tunnel]]\nname = \"a\"\nlocal_port = 1\n[[visit]]\ntunnel = \"n/s\"\n":     "adit.toml:4: visit[0].listen: must be a port, or an address of this machine with a port, such as 127.0.0.1:2222",
	} {
		file, err := config.Parse("adit.toml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		visits, err := definition.CheckVisits(declaredVisits(file))
		if err = visitMistake(file, err); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
		if want == "" && (len(visits) != 1 || visits[0] != definition.Visit{Tunnel: "nas/ssh", Type: "tcp", Listen: "127.0.0.1:2222"}) {
			t.Errorf("got %+v", visits)
		}
	}
}

// A table with ports declares a tunnel for each.
func TestDeclaredTunnelHasPorts(t *testing.T) {
	const text = `[[tunnel]]
name = "web"
local_port = 8000

[[tunnel]]
name = "game"
type = "udp"
local_port = 27015
remote_port = 20100
ports = 3

[[tunnel]]
name = "one"
type = "tcp"
local_port = 22
ports = 1
`
	file, err := config.Parse("adit.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	specs, tables, err := declaredSpecs(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkSpecs(specs); err != nil {
		t.Error(err)
	}
	var got []string
	for i, s := range specs {
		got = append(got, fmt.Sprintf("%d %s %d %d", tables[i], s.Name, s.LocalPort, s.RemotePort))
	}
	want := []string{"0 web 8000 0", "1 game-27015 27015 20100", "1 game-27016 27016 20101", "1 game-27017 27017 20102", "2 one-22 22 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// What the agent has against one of them is said of its table.
	clash := text + "[[tunnel]]\nname = \"game-27016\"\nlocal_port = 1\n"
	if file, err = config.Parse("adit.toml", []byte(clash)); err != nil {
		t.Fatal(err)
	}
	if specs, tables, err = declaredSpecs(file, nil); err != nil {
		t.Fatal(err)
	}
	const mistake = `adit.toml:18: tunnel[3].name: another tunnel is called "game-27016" already`
	if err := declareMistake(file, tables, checkSpecs(specs)); err == nil || err.Error() != mistake {
		t.Errorf("got %v, want %s", err, mistake)
	}
}

// checkSpecs says what an agent without other tunnels would say of specs.
func checkSpecs(specs []definition.Tunnel) error {
	_, err := definition.Declared(specs, "i", origin.Guard{}, nil)
	return err
}
