package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"adit/internal/atomicfile"
	"adit/internal/discovery"
)

const patience = 20 * time.Second

// startDaemon runs a daemon on a free port until the test ends, or stop is called.
func startDaemon(t *testing.T, d Daemon) (url string, stop func()) {
	t.Helper()
	if d.HTTPListen == "" {
		d.HTTPListen = "127.0.0.1:0"
	}
	if d.StateDir == "" {
		d.StateDir = t.TempDir()
	}
	if d.ConfigDir == "" {
		d.ConfigDir = t.TempDir()
	}
	if d.Log == nil {
		d.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	d.ConfigEvery = 5 * time.Millisecond
	ready := make(chan net.Addr, 1)
	d.Ready = func(a net.Addr) { ready <- a }
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Run: got error %v, want nil", err)
			}
		case <-time.After(patience):
			t.Error("Run did not return after its context ended")
		}
	}
	t.Cleanup(stop)
	select {
	case a := <-ready:
		return "http://" + a.String(), stop
	case err := <-done:
		ended = true
		t.Fatalf("daemon: %v", err)
	case <-time.After(patience):
		t.Fatal("the daemon was never ready")
	}
	return "", stop
}

func ask(t *testing.T, method, url string, in, out any) int {
	t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if out != nil {
		if err := json.NewDecoder(res.Body).Decode(out); err != nil {
			t.Fatalf("%s %s: %v", method, url, err)
		}
	}
	return res.StatusCode
}

func TestDaemonIsFoundAndEndsCleanly(t *testing.T) {
	state := t.TempDir()
	url, stop := startDaemon(t, Daemon{StateDir: state})
	info, err := discovery.Read(state)
	if err != nil || "http://"+info.ConnectAddr != url {
		t.Errorf("runtime.json: got %+v, %v, want %s", info, err, url)
	}
	if got := ask(t, "GET", url+"/healthz", nil, nil); got != http.StatusOK {
		t.Errorf("healthz: got %d", got)
	}
	stop()
	if _, err := discovery.Read(state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("runtime.json after the end: got error %v", err)
	}
}

// As with a full disk.
func TestDaemonServesWhereItCannotSaySo(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, discovery.Name, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	url, _ := startDaemon(t, Daemon{StateDir: dir})
	if code := ask(t, http.MethodGet, url+"/healthz", nil, nil); code != http.StatusOK {
		t.Errorf("got status %d", code)
	}
}

func TestOpenListenerWithoutBearerIsRefused(t *testing.T) {
	err := Daemon{HTTPListen: "0.0.0.0:0", StateDir: t.TempDir(), ConfigDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "bearer_token") {
		t.Errorf("got %v, want a refusal that says what to set", err)
	}
}

func TestOpenListenerWithAWeakBearerIsRefused(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "adit.toml"), []byte("[local_api]\nbearer_token = \"x\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Daemon{
		HTTPListen: "0.0.0.0:0", StateDir: state, ConfigDir: dir, Log: slog.New(slog.DiscardHandler),
		Ready: func(net.Addr) { t.Error("it was ready") },
	}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "bearer_token") {
		t.Errorf("got %v, want a refusal that says what to set", err)
	}
}

func TestTakenPortIsOneClearSentenceAboutWhoHasIt(t *testing.T) {
	url, _ := startDaemon(t, Daemon{})
	foreign := httptest.NewServer(http.NotFoundHandler())
	defer foreign.Close()
	console := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"status":"ok","version":"v1","service":"relay"}`))
	}))
	defer console.Close()
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	for addr, want := range map[string]string{
		strings.TrimPrefix(url, "http://"):         "in use by adit",
		strings.TrimPrefix(foreign.URL, "http://"): "in use by another program",
		strings.TrimPrefix(console.URL, "http://"): "in use by another program",
		mute.Addr().String():                       "in use by what does not answer",
	} {
		err := Daemon{HTTPListen: addr, StateDir: t.TempDir(), ConfigDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "--http_listen") {
			t.Errorf("got %v, want that the port is %s", err, want)
		}
	}
}

func TestMalformedListenerIsOneClearSentence(t *testing.T) {
	for _, addr := range []string{"nonsense", "127.0.0.1:99999", "127.0.0.1:http:x"} {
		err := Daemon{HTTPListen: addr, StateDir: t.TempDir(), ConfigDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "must be an address and a port") {
			t.Errorf("%s: got %v, want what it must be", addr, err)
		}
	}
}

func TestAddressOfNoMachineIsOneClearSentence(t *testing.T) {
	err := Daemon{HTTPListen: "192.0.2.1:0", StateDir: t.TempDir(), ConfigDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "this machine has no such address") {
		t.Errorf("got error %v, want what is wrong with the address", err)
	}
}

func TestNameThatDoesNotResolveIsOneClearSentence(t *testing.T) {
	lookup := &net.OpError{Op: "listen", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "nas.invalid", Server: "192.0.2.53:53"}}
	err := listenError(t.Context(), "nas.invalid:80", lookup)
	if want := "the name nas.invalid does not resolve; listen on an address"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

func TestStateFolderThatCannotBeMadeIsOneClearSentence(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Daemon{HTTPListen: "127.0.0.1:0", StateDir: file, ConfigDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "ADIT_STATE_DIR") {
		t.Errorf("got %v, want the folder and how to name another", err)
	}
}

func TestOwnListenerIsNotPublished(t *testing.T) {
	url, _ := startDaemon(t, Daemon{})
	_, text, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "::1", "0.0.0.0", "127.1.2.3", "::ffff:127.0.0.1"} {
		var got struct{ Error struct{ Code, Field string } }
		var status int
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			status = ask(t, "POST", url+"/api/v1/tunnels", map[string]any{"local_ip": host, "local_port": port}, &got)
			if got.Error.Code != "control_busy" { // it has just started, and reads its file
				break
			}
		}
		if status != http.StatusBadRequest || got.Error.Code != "invalid_parameter" || got.Error.Field != "local_ip" {
			t.Errorf("%s: got %d %+v, want local_ip at fault", host, status, got)
		}
	}
}

func TestDeclaredTunnelsFollowTheFile(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := atomicfile.Write(filepath.Join(dir, "adit.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("[[tunnel]]\nname = \"shop\"\nlocal_port = 8000\n")
	url, _ := startDaemon(t, Daemon{ConfigDir: dir})
	type tunnel struct {
		ID, Name  string
		LocalPort int `json:"local_port"`
		Declared  bool
		State     string
	}
	var list struct{ Data struct{ Items []tunnel } }
	tunnels := func(want ...string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			list.Data.Items = nil
			ask(t, "GET", url+"/api/v1/tunnels", nil, &list)
			var got []string
			for _, tun := range list.Data.Items {
				got = append(got, tun.Name+":"+strconv.Itoa(tun.LocalPort))
			}
			if strings.Join(got, " ") == strings.Join(want, " ") {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("got tunnels %v, want %v", got, want)
			}
		}
	}
	tunnels("shop:8000")
	first := list.Data.Items[0]
	if !first.Declared || first.State != "waiting" {
		t.Errorf("got %+v, want it declared and waiting", first)
	}
	var refused struct{ Error struct{ Code string } }
	for _, try := range [][2]string{{"PATCH", ""}, {"DELETE", ""}, {"POST", "/stop"}} {
		var in any
		if try[0] == "PATCH" {
			in = map[string]any{"local_port": 1}
		}
		status := http.StatusConflict
		for end := time.Now().Add(patience); status == http.StatusConflict && time.Now().Before(end); {
			// The file may still be being applied.
			status = ask(t, try[0], url+"/api/v1/tunnels/"+first.ID+try[1], in, &refused)
		}
		if status != http.StatusBadRequest || refused.Error.Code != "invalid_parameter" {
			t.Errorf("%s %s: got %d %+v", try[0], try[1], status, refused)
		}
	}

	write("[[tunnel]]\nname = \"shop\"\nlocal_port = 8001\n\n[[tunnel]]\nname = \"db\"\ntype = \"tcp\"\nlocal_port = 5432\n")
	tunnels("shop:8001", "db:5432")
	if list.Data.Items[0].ID != first.ID {
		t.Error("a changed tunnel is another one")
	}

	var config struct {
		Data struct {
			Settings []struct{ Key, Source string }
			Error    *struct {
				Message, Key string
				Line         int
			}
		}
	}
	mistake := func(line int, key string) {
		t.Helper()
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			config.Data.Error = nil
			ask(t, "GET", url+"/api/v1/config", nil, &config)
			e := config.Data.Error
			if line == 0 && e == nil || e != nil && e.Line == line && e.Key == key {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("got mistake %+v, want line %d and key %s", e, line, key)
			}
		}
	}
	write("[[tunnel]]\nname = \"shop\"\nlocal_port = 8001\n\n[[tunnel]]\nname = \"db\"\ntype = \"ftp\"\nlocal_port = 5432\n")
	mistake(7, "tunnel[1].type")
	tunnels("shop:8001", "db:5432")
	write("[[tunnel]]\nname = \n")
	for end := time.Now().Add(patience); config.Data.Error == nil || config.Data.Error.Line != 2; time.Sleep(5 * time.Millisecond) {
		config.Data.Error = nil
		ask(t, "GET", url+"/api/v1/config", nil, &config)
		if time.Now().After(end) {
			t.Fatalf("got mistake %+v, want line 2", config.Data.Error)
		}
	}
	write("[[tunnel]]\nname = \"db\"\ntype = \"tcp\"\nlocal_port = 5432\n")
	tunnels("db:5432")
	mistake(0, "")
	if err := os.Remove(filepath.Join(dir, "adit.toml")); err != nil {
		t.Fatal(err)
	}
	tunnels()
}

// A daemon that starts with a mistake has no last good state to keep.
func TestMistakeIsLoggedWithWhatHolds(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		t.Helper()
		if err := atomicfile.Write(filepath.Join(dir, "adit.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const wrong, right = "[[tunnel]]\nname = \"shop\"\nlocal_port = 8000\ntype = \"ftp\"\n", "[[tunnel]]\nname = \"shop\"\nlocal_port = 8000\n"
	write(wrong)
	url, _ := startDaemon(t, Daemon{ConfigDir: dir})
	logged := func(want string) {
		t.Helper()
		var told []string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			var logs struct {
				Data struct{ Items []struct{ Message string } }
			}
			ask(t, "GET", url+"/api/v1/logs?level=error", nil, &logs)
			told = nil
			for _, line := range logs.Data.Items {
				told = append(told, line.Message)
			}
			if len(told) > 0 && told[len(told)-1] == want {
				return
			}
		}
		t.Fatalf("got %q, want %q at the end", told, want)
	}
	logged("declared tunnels do not run until the configuration is mended")
	write(right)
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var list struct {
			Data struct{ Items []struct{ Name string } }
		}
		if ask(t, "GET", url+"/api/v1/tunnels", nil, &list); len(list.Data.Items) == 1 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the tunnel of the mended file did not come")
		}
	}
	write(wrong)
	logged("configuration not applied; the last good one stays in force")
}

func TestABearerFileThatIsNotThereIsToldWithWhoNamesIt(t *testing.T) {
	dir := t.TempDir()
	config, secret := filepath.Join(dir, "adit.toml"), filepath.Join(dir, "gone")
	if err := os.WriteFile(config, []byte("[local_api]\nbearer_token_file = '"+secret+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := Daemon{HTTPListen: "127.0.0.1:0", StateDir: t.TempDir(), ConfigDir: dir, Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
	for _, want := range []string{config, "local_api.bearer_token_file", secret} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %s in it", err, want)
		}
	}
}

func TestAuthTokenIsFromTheFirstThatHasOne(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth_token")
	marked, wide := file+".marked", file+".wide"
	for name, text := range map[string]string{
		file: "adit_file\n", marked: "\ufeffadit_file\r\n", // as PowerShell writes files
		wide: "\xff\xfea\x00d\x00", // as its older ones do
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct{ given, env, file, want string }{
		"nobody":           {},
		"file":             {file: file, want: "adit_file"},
		"file with a mark": {file: marked, want: "adit_file"},
		"before the file":  {env: " adit_env\n", file: file + "none", want: "adit_env"},
		"given":            {given: "adit_given", env: "adit_env", file: file, want: "adit_given"},
	} {
		t.Setenv(envAuthToken, test.env)
		t.Setenv(envAuthTokenFile, test.file)
		if got, err := (Daemon{AuthToken: test.given}).authToken(); err != nil || got != test.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, test.want)
		}
	}
	t.Setenv(envAuthToken, "")
	t.Setenv(envAuthTokenFile, wide)
	if got, err := (Daemon{}).authToken(); err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("file in UTF-16: got %q, %v, want an error that says so", got, err)
	}
	for _, name := range []string{file + "none", filepath.Dir(file)} {
		t.Setenv(envAuthTokenFile, name)
		err := Daemon{HTTPListen: "127.0.0.1:0", StateDir: t.TempDir(), ConfigDir: t.TempDir(), Log: slog.New(slog.DiscardHandler)}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), envAuthTokenFile) || !strings.Contains(err.Error(), name) {
			t.Errorf("file %s: got error %v, want one that names it and the variable", name, err)
		}
	}
}

func TestBearerFromTheFileGuardsTheAPI(t *testing.T) {
	dir := t.TempDir()
	const secret = "0123456789abcdef-secret"
	if err := os.WriteFile(filepath.Join(dir, "adit.toml"), []byte("[local_api]\nbearer_token = \""+secret+"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, _ := startDaemon(t, Daemon{ConfigDir: dir})
	if got := ask(t, "GET", url+"/api/v1/status", nil, nil); got != http.StatusUnauthorized {
		t.Errorf("without: got %d, want 401", got)
	}
	req, err := http.NewRequest(http.MethodGet, url+"/api/v1/config", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("with: got %d, %v", res.StatusCode, err)
	}
	if strings.Contains(string(body), secret) {
		t.Error("the configuration shows the secret")
	}
}
