package localapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"adit/internal/buildtest"
	"adit/internal/openapicheck"
	"adit/internal/require"
	"adit/tunnel/wire"
)

// program is a built adit that runs all of itself on loopback.
type program struct {
	cmd   *exec.Cmd
	url   string
	edge  string // the sample's public http URL
	ended chan error
}

// startBinary builds adit as it is released, and runs "adit dev".
func startBinary(t *testing.T) *program {
	t.Helper()
	require.Tool(t, "go")
	dir := t.TempDir()
	path := filepath.Join(dir, "adit.exe")
	if err := buildtest.Program(path, "adit"); err != nil {
		t.Fatal(err)
	}
	b := &program{ended: make(chan error, 1)}
	b.cmd = exec.Command(path, "dev", "--json", "--http_listen", "127.0.0.1:0", "--tunnel_listen", "127.0.0.1:0",
		"--edge_http_listen", "127.0.0.1:0", "--edge_https_listen", "127.0.0.1:0", "--console_listen", "127.0.0.1:0")
	b.cmd.Env = append(os.Environ(), "TMPDIR="+dir, "TMP="+dir, "ADIT_CONFIG_DIR="+dir)
	var stderr bytes.Buffer
	b.cmd.Stderr = &stderr
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make(chan []byte, 1)
	go func() {
		first, _ := bufio.NewReader(out).ReadBytes('\n')
		line <- first
		_, _ = io.Copy(io.Discard, out)
		b.ended <- b.cmd.Wait()
	}()
	t.Cleanup(func() { b.cmd.Process.Kill() })
	select {
	case first := <-line:
		var ready struct {
			WebUI      string            `json:"web_ui"`
			PublicURLs map[string]string `json:"public_urls"`
		}
		if err := json.Unmarshal(first, &ready); err != nil {
			t.Fatalf("adit dev: %v in %q; stderr %s", err, first, &stderr)
		}
		b.url, b.edge = strings.TrimSuffix(ready.WebUI, "/"), ready.PublicURLs["http"]
	case <-time.After(time.Minute):
		t.Fatalf("adit dev is not ready after a minute; stderr %s", &stderr)
	}
	return b
}

// TestBuiltBinaryFitsTheDocument drives the API from outside, with a real relay
// and a real agent behind it.
func TestBuiltBinaryFitsTheDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	t.Parallel()
	b := startBinary(t)
	d := loadDocument(t)
	r := &running{agent: newFakeAgent(), url: b.url, addr: strings.TrimPrefix(b.url, "http://")}
	stream := r.events(t, nil, "")

	// A visitor comes, so that the inspector has something to show.
	req, err := http.NewRequest("GET", b.edge+"/?from=test", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = req.URL.Host
	req.URL.Host = "127.0.0.1:" + req.URL.Port() // sample.localhost may have no address here
	req.Header.Set("Authorization", "Basic c2VjcmV0")
	if resp, err := plainClient.Do(req); err != nil || resp.StatusCode != 200 {
		t.Fatalf("visit %s: got %v, %v", b.edge, resp, err)
	}
	request := b.await(t, "/api/v1/requests?q=from%3Dtest&status=2xx", `"id":"`)
	created := r.made(t, `{"type":"tcp","local_port":9,"name":"made"}`)

	for _, a := range successes() {
		if a.path == "/api/v1/auth" || a.path == "/api/v1/auth/configure" {
			continue // below: they change what the others stand on
		}
		if strings.HasSuffix(a.path, "/hold") { // it would last; that it does is tested with a short form that is killed
			a.status, a.code, a.field = 400, "invalid_parameter", "held"
		}
		if a.path == visited { // there is none such
			a.status, a.code = 400, "relay_rejected"
		}
		a.target = strings.NewReplacer("r_1", request, "r_2", request, "t_1", created).Replace(a.target)
		a.body = strings.Replace(a.body, `"domain":"shop"`, `"domain":"shop`+fmt.Sprint(len(d.Seen))+`"`, 1)
		r.ask(t, d, a)
	}
	other := r.made(t, `{"local_port":9}`)
	tunnel := "/api/v1/tunnels/{id}"
	for _, a := range []ask{
		{method: "GET", path: tunnel, target: "/api/v1/tunnels/" + created, status: 404, code: "not_found"},
		{method: "POST", path: "/api/v1/auth/configure", body: `{"auth_token":"adit_nonsense"}`, status: 400, code: "invalid_token", field: "auth_token"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"type":"ftp","local_port":1}`, status: 400, code: "invalid_parameter", field: "type"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"mode":"magic","local_port":1}`, status: 400, code: "invalid_parameter", field: "mode"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_ip":"169.254.169.254","local_port":80}`, status: 400, code: "invalid_parameter", field: "local_ip"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":` + r.addr[strings.LastIndexByte(r.addr, ':')+1:] + `}`, status: 400, code: "invalid_parameter", field: "local_ip"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":1,"domain":"sample","type":"http"}`, status: 400, code: "relay_rejected", field: "domain"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":1,"request_headers":{"host":"a"}}`, status: 400, code: "invalid_parameter", field: "request_headers"},
		{method: "PATCH", path: tunnel, target: "/api/v1/tunnels/" + other, body: `{"response_headers":{"X-Env":"a","x-env":null}}`, status: 400, code: "invalid_parameter", field: "response_headers"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":1,"paths":[{"path":"/api/","local_port":2}]}`, status: 400, code: "invalid_parameter", field: "paths"},
		{method: "PATCH", path: tunnel, target: "/api/v1/tunnels/" + other, body: `{"paths":[{"path":"/api","local_ip":"169.254.169.254","local_port":80}]}`, status: 400, code: "invalid_parameter", field: "paths"},
		{method: "PATCH", path: tunnel, target: "/api/v1/tunnels/" + other, body: `{"paths":[{"path":"/api","local_port":80},{"path":"/api/v2","local_port":81,"strip":true}]}`, status: 200},
		{method: "PATCH", path: tunnel, target: "/api/v1/tunnels/" + other, body: `{"paths":[]}`, status: 200},
		{method: "POST", path: tunnel + "/start", target: "/api/v1/tunnels/" + other + "/start", status: 200},
		{method: "POST", path: tunnel + "/start", target: "/api/v1/tunnels/" + other + "/start", status: 200},
		{method: "POST", path: tunnel + "/stop", target: "/api/v1/tunnels/" + other + "/stop", status: 200},
		{method: "POST", path: tunnel + "/stop", target: "/api/v1/tunnels/" + other + "/stop", status: 200},
		{method: "PATCH", path: tunnel, target: "/api/v1/tunnels/" + other, body: `{"local_port":0}`, status: 400, code: "invalid_parameter", field: "local_port"},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":1}`, header: http.Header{"Origin": {"https://evil.example"}}, status: 403, code: "forbidden_origin"},
		{method: "GET", path: "/api/v1/status", host: "evil.example", status: 403, code: "forbidden_host"},
	} {
		r.ask(t, d, a)
	}

	// While a token is tried at a relay that is silent, nothing else is changed.
	silent := wire.Token{Relay: "127.0.0.1:9"}.Reveal()
	unreachable := make(chan *http.Response, 1)
	go func() {
		patient := &http.Client{Timeout: 3 * controlTimeout}
		for {
			resp, err := patient.Post(b.url+"/api/v1/auth/configure", "application/json", strings.NewReader(`{"auth_token":"`+silent+`"}`))
			if err == nil && resp.StatusCode == 409 { // it came while one of the changes below was made
				resp.Body.Close()
				continue
			}
			if err != nil {
				t.Error(err)
				resp = nil
			}
			unreachable <- resp
			return
		}
	}()
	busy := false
	for deadline := time.Now().Add(20 * time.Second); !busy && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		resp, body := r.do(t, "POST", "/api/v1/tunnels/"+other+"/stop", "", nil)
		busy = resp.StatusCode == 409
		if busy {
			d.Answer(t, tunnel+"/stop", "POST", resp, []byte(body))
		}
	}
	if !busy {
		t.Error("a second change was never refused with 409 control_busy")
	}
	if resp := <-unreachable; resp != nil {
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 503 {
			t.Errorf("a token of a silent relay: got status %d, want 503; %s", resp.StatusCode, body)
		} else {
			d.Answer(t, "/api/v1/auth/configure", "POST", resp, body)
		}
	}
	b.await(t, "/api/v1/status", `"connected":true`) // what was in force still is

	r.ask(t, d, ask{method: "DELETE", path: "/api/v1/auth", status: 204})
	r.ask(t, d, ask{method: "GET", path: "/api/v1/auth/status", status: 200})
	b.await(t, "/api/v1/status", `"state":"unconfigured"`)
	r.ask(t, d, ask{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":1}`, status: 400, code: "not_configured"})

	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Skipf("this system has no signal to end a program with: %v", err)
	}
	checkStream(t, d, stream)
	select {
	case err := <-b.ended:
		if err != nil {
			t.Errorf("adit dev ended with %v, want exit code 0", err)
		}
	case <-time.After(40 * time.Second):
		t.Error("adit dev did not end")
	}
}

// made creates a tunnel and returns its id.
func (r *running) made(t *testing.T, body string) string {
	t.Helper()
	resp, answer := r.do(t, "POST", "/api/v1/tunnels", body, nil)
	var made struct{ Data struct{ ID string } }
	if err := json.Unmarshal([]byte(answer), &made); err != nil || resp.StatusCode != 201 || made.Data.ID == "" {
		t.Fatalf("create %s: got status %d, %s", body, resp.StatusCode, answer)
	}
	if want := Prefix + "/tunnels/" + made.Data.ID; resp.Header.Get("Location") != want {
		t.Errorf("got Location %s, want %s", resp.Header.Get("Location"), want)
	}
	return made.Data.ID
}

// await asks until the answer has text, and returns the first id in it.
func (b *program) await(t *testing.T, path, text string) string {
	t.Helper()
	var body []byte
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		resp, err := plainClient.Get(b.url + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ = io.ReadAll(resp.Body)
		resp.Body.Close()
		if bytes.Contains(body, []byte(text)) {
			_, rest, _ := strings.Cut(string(body), `"id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			return id
		}
	}
	t.Fatalf("%s never said %s; last %s", path, text, body)
	return ""
}

// checkStream reads all that came on an event stream, to its clean end.
func checkStream(t *testing.T, d *openapicheck.Document, stream *reader) {
	t.Helper()
	seen := make(map[string]int)
	last := int64(-1) // ids are longer than a number of 32 bits
	for {
		id, kind, data, ok := stream.next()
		if !ok {
			break
		}
		var n int64
		if _, err := fmt.Sscan(id, &n); err != nil {
			t.Fatalf("event id %q: %v", id, err)
		}
		if last >= 0 && n != last+1 {
			t.Errorf("event %d follows %d, want ids that rise by one", n, last)
		}
		last = n
		seen[kind]++
		d.Event(t, kind, data)
	}
	for _, kind := range []string{"status", "tunnel", "endpoint", "request", "log"} {
		if seen[kind] == 0 {
			t.Errorf("no event %s came; got %v", kind, seen)
		}
	}
}
