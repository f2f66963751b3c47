package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMissingFileMeansDefaults(t *testing.T) {
	f, err := Load(t.TempDir())
	if err != nil || f.Exists() || len(f.Tunnels) != 0 || f.HTTPListen != "" {
		t.Errorf("got %+v, %v, want all defaults", f, err)
	}
}

// What is there and cannot be read is no missing file, and nobody waits for it.
func TestWhatIsNoFileIsTold(t *testing.T) {
	for name, made := range map[string]struct {
		make func(path string) error
		want string
	}{
		"a folder":          {func(path string) error { return os.Mkdir(path, 0o700) }, "it is not a file"},
		"a link to nothing": {func(path string) error { return os.Symlink("gone.toml", path) }, "a link to gone.toml, which is not there"},
		"a pipe":            {makePipe, "it is not a file"},
		"a secret of others": {func(path string) error {
			if os.Geteuid() == 0 {
				return errors.ErrUnsupported // who reads all
			}
			return os.WriteFile(path, nil, 0o200)
		}, "let the user that runs adit read it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, Name)
			if err := made.make(path); err != nil {
				t.Skip(err) // of a system that has no such thing
			}
			if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), made.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got error %v, want %s and %q", err, path, made.want)
			}
		})
	}
}

func TestFilesOfWindowsEditorsAreRead(t *testing.T) {
	f, err := Parse("adit.toml", []byte("\ufeffhttp_listen = \"127.0.0.1:1\"\r\n"))
	if err != nil || f.HTTPListen != "127.0.0.1:1" {
		t.Errorf("with a byte order mark: got %+v, error %v", f, err)
	}
	for _, text := range []string{"\xff\xfeh\x00", "\xfe\xff\x00h"} {
		if _, err := Parse("adit.toml", []byte(text)); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("in UTF-16: got error %v, want what to do", err)
		}
	}
}

func TestBearerTokenThatEverybodyMayReadIsTold(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Name)
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(dir, "secret")
	inFile := "[local_api]\nbearer_token_file = '" + secret + "'\n"
	for _, tt := range []struct {
		text       string
		mode, kept os.FileMode
		want       string
	}{
		{"[local_api]\nbearer_token = \"0123456789abcdef\"\n", 0o644, 0o600, path},
		{"[local_api]\nbearer_token = \"0123456789abcdef\"\n", 0o640, 0o600, ""},
		{inFile, 0o644, 0o644, secret},
		{inFile, 0o644, 0o600, ""},
		{"http_listen = \"127.0.0.1:1\"\n", 0o644, 0o644, ""},
	} {
		write(path, tt.text, tt.mode)
		write(secret, "0123456789abcdef", tt.kept)
		f, err := Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !tellsModes {
			tt.want = ""
		}
		if got := f.OpenSecret(); got != tt.want {
			t.Errorf("%q, %o and %o: got %q, want %q", tt.text, tt.mode, tt.kept, got, tt.want)
		}
	}
}

func TestKeysThatAreNearlyRightAreTold(t *testing.T) {
	for text, want := range map[string]string{
		"http-listen = \"127.0.0.1:1\"":           `adit.toml:1: http-listen: there is no such key; did you mean "http_listen"?`,
		"[[tunnels]]\nname = \"a\"":               `adit.toml:1: tunnels: there is no such key; did you mean "tunnel"?`,
		"[[tunnel]]\nname = \"a\"\nlocalport = 1": `adit.toml:3: tunnel.localport: there is no such key; did you mean "tunnel.local_port"?`,
		"level = \"debug\"":                       `adit.toml:1: level: there is no such key; did you mean "log.level"?`,
		"frobnicate = 1":                          `adit.toml:1: frobnicate: there is no such key`,
		"http_listen = “127.0.0.1:1”":             `adit.toml:1: it has typographic quotes; write straight ones: "`,
	} {
		if _, err := Parse("adit.toml", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v\nwant %s", text, err, want)
		}
	}
}

const full = `
http_listen = "127.0.0.1:8181"

[local_api]
bearer_token = "0123456789abcdef"
allowed_origins = ["https://console.example.com", "http://nas.local:5000"]
allowed_hosts = ["nas.local"]

[session]
transport = "tls"

[inspector]
enabled = false
memory_mib = 16
body_kib = 64

[log]
level = "debug"

[[tunnel]]
name = "shop"
local_port = 8000

[[tunnel]]
name = "db"
type = "tcp"
mode = "balanced"
local_ip = "10.0.0.7"
local_port = 5432
remote_port = 20001
proxy_protocol = "v2"
inspect = false

[[tunnel]]
name = "web"
local_port = 80
request_headers = { X-Env = "prod", "Cookie" = "" }

[tunnel.response_headers]
Server = ""
Cache-Control = "max-age=60"

[[tunnel.paths]]
path = "/api"
local_ip = "::1"
local_port = 8080
local_scheme = "h2c"
host_header = "api.lan"
strip = true

[[tunnel.paths]]
path = "/files"
local_port = 8081

[[visit]]
tunnel = "nas/ssh"
listen = "127.0.0.1:2222"
`

func TestEveryKeyIsRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, Name), []byte(full), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if f.HTTPListen != "127.0.0.1:8181" || f.LocalAPI.AllowedOrigins[1] != "http://nas.local:5000" || *f.Inspector.Enabled ||
		f.Inspector.MemoryMiB != 16 || f.Session.Transport != "tls" || f.Log.Level != "debug" || len(f.Tunnels) != 3 {
		t.Errorf("got %+v", f)
	}
	if d := f.Tunnels[1]; d.Name != "db" || d.RemotePort != 20001 || *d.Inspect || d.LocalIP != "10.0.0.7" {
		t.Errorf("got %+v", d)
	}
	if w := f.Tunnels[2]; fmt.Sprint(w.RequestHeaders, w.ResponseHeaders) != "map[Cookie: X-Env:prod] map[Cache-Control:max-age=60 Server:]" {
		t.Errorf("got %+v", w)
	}
	if w := f.Tunnels[2]; fmt.Sprint(w.Paths) != "[{/api ::1 8080 h2c api.lan true} {/files  8081   false}]" {
		t.Errorf("got %+v", w.Paths)
	}
	if len(f.Visits) != 1 || f.Visits[0] != (Visit{Tunnel: "nas/ssh", Listen: "127.0.0.1:2222"}) {
		t.Errorf("got %+v", f.Visits)
	}
	for key, want := range map[string]int{"request_headers": 37, "response_headers": 39, "paths": 43, "local_port": 36} {
		if e := f.Mistake("tunnel", 2, key, "no"); e.Line != want {
			t.Errorf("%s: got line %d, want %d", key, e.Line, want)
		}
	}
	if !f.Sets("", "http_listen") || !f.Sets("log", "level") || f.Sets("local_api", "bearer_token_file") {
		t.Error("Sets does not tell what the file has")
	}
}

// Keys count in any letter case where the file is read: what is said of them has
// to be so, too.
func TestLetterCaseOfKeysDoesNotCount(t *testing.T) {
	f, err := Parse("adit.toml", []byte("HTTP_Listen = \"127.0.0.1:8181\"\n[log]\n[LOG]\nLevel = \"debug\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if f.HTTPListen != "127.0.0.1:8181" || f.Log.Level != "debug" {
		t.Fatalf("got %+v, want the values", f)
	}
	if !f.Sets("", "http_listen") || !f.Sets("log", "level") || f.Sets("log", "levels") {
		t.Error("Sets does not tell what the file has")
	}
}

func TestMistakesNameLineAndKey(t *testing.T) {
	for _, test := range []struct {
		text, key string
		line      int
	}{
		{"\nunknown = 1", "unknown", 2},
		{"[local_api]\nbearer = 1", "local_api.bearer", 2},
		{"[[tunnel]]\nname = \"a\"\nlocal_prot = 1", "tunnel.local_prot", 3},
		{"[[tunnel]]\nname = \"a\"\nlocal_port = \"x\"", "tunnel.local_port", 3},
		{"http_listen = ", "", 1},
		{"http_listen = \"nowhere\"", "http_listen", 1},
		{"[local_api]\nbearer_token = \"0123456789abcdef\"\nbearer_token_file = \"x\"", "local_api.bearer_token_file", 3},
		{"[local_api]\nallowed_origins = [\"*\"]", "local_api.allowed_origins", 2},
		{"[local_api]\nallowed_hosts = [\"a/b\"]", "local_api.allowed_hosts", 2},
		{"[session]\ntransport = \"sctp\"", "session.transport", 2},
		{"[log]\nlevel = \"loud\"", "log.level", 2},
		{"[inspector]\nmemory_mib = -1", "inspector.memory_mib", 2},
		{"[[visit]]\ntunnel = \"nas/ssh\"\nport = 1", "visit.port", 3},
		{"[[tunnel]]\nlocal_port = 1", "tunnel[0].name", 1},
		{"[Log]\n\nLEVEL = \"loud\"", "log.level", 3},
		{"[[tunnel]]\nname = \"a\"\n[[tunnel]] # second\nlocal_port = 2\nname = \"a\"", "tunnel[1].name", 5},
		{"[[tunnel]]\nname = \"a\"\ntype = \"tcp\"\nlocal_port = 1\nports = 257", "tunnel[0].ports", 5},
		{"[[tunnel]]\nname = \"a\"\ntype = \"tcp\"\nlocal_port = 1\nports = -1", "tunnel[0].ports", 5},
		{"[[tunnel]]\nname = \"a\"\nlocal_port = 1\nports = 2", "tunnel[0].ports", 4},
		{"[[tunnel]]\nname = \"a\"\ntype = \"udp\"\nlocal_port = 65534\nports = 3", "tunnel[0].ports", 5},
		{"[[tunnel]]\nname = \"a\"\ntype = \"udp\"\nlocal_port = 1\nports = 3\nremote_port = 65534", "tunnel[0].ports", 5},
		{strings.Join([]string{
			"[[tunnel]]\nname = \"a\"\ntype = \"tcp\"\nlocal_port = 1\nports = 251",
			"[[tunnel]]\nname = \"b\"\ntype = \"tcp\"\nlocal_port = 1\nports = 250",
			"[[tunnel]]\nname = \"c\"\ntype = \"tcp\"\nlocal_port = 1\nports = 250",
			"[[tunnel]]\nname = \"d\"\ntype = \"tcp\"\nlocal_port = 1\nports = 250",
		}, "\n"), "tunnel[3].ports", 20},
	} {
		_, err := Parse("adit.toml", []byte(test.text))
		var e *Error
		if !errors.As(err, &e) || e.Line != test.line || !strings.HasSuffix(e.Key, test.key) || e.Message == "" {
			t.Errorf("%q: got %#v, want line %d and key %q", test.text, err, test.line, test.key)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("[[tunnel]]\nname='''a\nb'''"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("adit.toml", text)
		if (file == nil) == (err == nil) {
			t.Errorf("got %v and %v", file, err)
		}
	})
}

func TestValueOfTheWrongKindIsToldWithoutGo(t *testing.T) {
	for text, want := range map[string]string{
		"[[tunnel]]\nname=\"a\"\nlocal_port=\"x\"":         "3: tunnel.local_port: must be a whole number, not a string, in quotes",
		"http_listen = 37271":                              "1: http_listen: must be a string, in quotes, not a whole number",
		"[inspector]\nenabled = \"yes\"":                   "2: inspector.enabled: must be true or false, not a string, in quotes",
		"[local_api]\nallowed_hosts = \"nas.lan\"":         "2: local_api.allowed_hosts: must be a list of strings, in brackets, not a string, in quotes",
		"local_api = 3":                                    "1: local_api: must be a table, not a whole number",
		"[[tunnel]]\nname=\"a\"\nlocal_port=3.5":           "3: tunnel.local_port: must be a whole number, not a number with a fraction",
		"[[tunnel]]\nname=true":                            "2: tunnel.name: must be a string, in quotes, not true or false",
		"[[tunnel]]\nname=\"a\"\nlocal_port=[1]":           "",
		"[[tunnel]]\nname=\"a\"\nrequest_headers=\"a: b\"": "3: tunnel.request_headers: must be a table, not a string, in quotes",
		"[[tunnel]]\nname=\"a\"\nrequest_headers={a=1}":    "",
		"tunnel = 3": "",
		"[[tunnel]]\nname=\"a\"\nlocal_port=2026-01-01": "3: tunnel.local_port: must be a whole number, not a date",
	} {
		_, err := Parse("adit.toml", []byte(text))
		if err == nil {
			t.Errorf("%q: got no error", text)
			continue
		}
		if want != "" && err.Error() != "adit.toml:"+want || strings.Contains(err.Error(), "config.") {
			t.Errorf("%q: got %q, want %q", text, err, want)
		}
	}
}
