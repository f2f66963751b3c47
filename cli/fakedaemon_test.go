package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// fakeDaemon answers as the local API does, from a table.
type fakeDaemon struct {
	*httptest.Server
	mu      sync.Mutex
	answers map[string]string // "METHOD /path": body; a body with "error" is a refusal
	asked   []string          // "METHOD /path body"
}

const (
	statusJSON = `{"configured":true,"connected":true,"state":"connected","relay":"relay.example:4433","client_name":"workshop-nas","transport":"dtls","rtt_ms":23.42,"connected_since":"2026-05-04T10:20:30Z","last_error":"","endpoint_count":1,"version":"v1.4.0","os":"linux","arch":"amd64","pid":4711,"started_at":"2026-05-04T10:20:29Z","bytes":{"in":1,"out":2}}`
	pausedJSON = `{"configured":true,"connected":false,"state":"paused","relay":"relay.example:4433","transport":"","rtt_ms":0,"connected_since":null,"last_error":"paused by a person","endpoint_count":0,"version":"v1.4.0","os":"linux","arch":"amd64","pid":4711,"started_at":"2026-05-04T10:20:29Z","bytes":{"in":1,"out":2}}`
	freshJSON  = `{"configured":false,"connected":false,"state":"unconfigured","relay":"","transport":"","rtt_ms":0,"connected_since":null,"last_error":"","endpoint_count":0,"version":"v1.4.0","os":"linux","arch":"amd64","pid":4711,"started_at":"2026-05-04T10:20:29Z","bytes":{"in":0,"out":0}}`
	tunnelJSON = `{"id":"t_1","name":"shop","type":"https","mode":"standard","local_ip":"127.0.0.1","local_port":3000,"local_scheme":"http","domain":"shop","remote_port":0,"host_header":"","request_headers":{"X-Env":"prod","Cookie":""},"response_headers":{"Server":""},"paths":[{"path":"/api/v2","local_ip":"::1","local_port":8081,"local_scheme":"https","host_header":"v2.lan","strip":false},{"path":"/api","local_ip":"127.0.0.1","local_port":8080,"local_scheme":"http","host_header":"","strip":true}],"visitors":[],"proxy_protocol":"","inspect":true,"ephemeral":false,"declared":false,"public_url":"https://shop.relay.example","state":"running","error":"","created_at":"2026-05-04T10:20:30Z"}`
	otherJSON  = `{"id":"t_2","name":"ssh","type":"tcp","mode":"standard","local_ip":"::1","local_port":22,"local_scheme":"","domain":"","remote_port":20022,"host_header":"","request_headers":{},"response_headers":{},"paths":[],"visitors":[],"proxy_protocol":"v2","inspect":true,"ephemeral":true,"declared":true,"public_url":"tcp://relay.example:20022","state":"failed","error":"the port is taken","created_at":"2026-05-04T10:20:30Z"}`
	requestRow = `"id":"r_1","kind":"http","tunnel_id":"t_1","tunnel_name":"shop","type":"https","time":"2026-05-04T10:21:00Z","visitor":"203.0.113.9:50122","state":"done","duration_ms":12.5,"method":"POST","host":"shop.relay.example","path":"/orders\u001b[2J","status":201,"bytes_in":410,"bytes_out":96`
	flowRow    = `"id":"r_2","kind":"flow","tunnel_id":"t_2","tunnel_name":"ssh","type":"tcp","time":"2026-05-04T10:21:00Z","visitor":"203.0.113.9:50123","state":"open","duration_ms":0,"bytes_in":4100,"bytes_out":5242880`
)

func newFakeDaemon(t *testing.T) *fakeDaemon {
	t.Helper()
	d := &fakeDaemon{answers: map[string]string{
		"GET /healthz":                     `{"status":"ok","version":"v1.4.0"}`,
		"GET /api/v1/status":               `{"data":` + statusJSON + `}`,
		"POST /api/v1/pause":               `{"data":` + pausedJSON + `}`,
		"POST /api/v1/resume":              `{"data":` + statusJSON + `}`,
		"POST /api/v1/reconnect":           `{"data":` + statusJSON + `}`,
		"POST /api/v1/auth/configure":      `{"data":{"configured":true,"authenticated":true,"client_id":"","relay":"relay.example:4433","token_hint":"adit_…Zk3v9Q","configured_at":"2026-05-04T10:20:30Z","last_error":""}}`,
		"DELETE /api/v1/auth":              ``,
		"GET /api/v1/endpoints":            `{"data":{"items":[{"id":"e_7","tunnel_id":"t_1","name":"shop","type":"https","mode":"standard","public_url":"https://shop.relay.example","local":"127.0.0.1:3000","state":"running","since":"2026-05-04T10:20:30Z","error":"","connections":{"open":1,"total":12},"bytes":{"in":1200,"out":88000}}]}}`,
		"GET /api/v1/tunnels":              `{"data":{"items":[` + tunnelJSON + `,` + otherJSON + `]}}`,
		"POST /api/v1/tunnels":             `{"data":` + tunnelJSON + `}`,
		"GET /api/v1/tunnels/t_1":          `{"data":` + tunnelJSON + `}`,
		"GET /api/v1/tunnels/t_2":          `{"data":` + otherJSON + `}`,
		"PATCH /api/v1/tunnels/t_1":        `{"data":` + tunnelJSON + `}`,
		"POST /api/v1/tunnels/t_1/start":   `{"data":` + tunnelJSON + `}`,
		"POST /api/v1/tunnels/t_1/stop":    `{"data":` + tunnelJSON + `}`,
		"DELETE /api/v1/tunnels/t_1":       ``,
		"GET /api/v1/requests":             `{"data":{"items":[{` + requestRow + `},{` + flowRow + `}]}}`,
		"GET /api/v1/requests/r_1":         `{"data":{` + requestRow + `,"tunnel_path":"/shop","request":{"line":"POST /orders HTTP/1.1","proto":"HTTP/1.1","headers":[{"name":"Authorization","value":"","redacted":true},{"name":"Accept","value":"*/*"}],"body":{"size":8,"text":"{\"a\":\t1}"}},"response":{"line":"HTTP/1.1 201 Created","proto":"HTTP/1.1","headers":[],"body":{"size":5000,"base64":"AAA=","truncated":true}},"curl":"curl -X POST https://shop.relay.example/orders"}}`,
		"GET /api/v1/requests/r_2":         `{"data":{` + flowRow + `}}`,
		"POST /api/v1/requests/r_1/replay": `{"data":{` + requestRow + `}}`,
		"DELETE /api/v1/requests":          ``,
		"GET /api/v1/requests.har":         `{"log":{"version":"1.2"}}`,
		"POST /api/v1/requests.har":        `{"data":{"added":3}}`,
		"GET /api/v1/logs":                 `{"data":{"items":[{"time":"2026-05-04T10:20:30Z","level":"warn","message":"session is\nlost","fields":{"relay":"relay.example:4433","after_ms":12}}]}}`,
		"POST /api/v1/diagnostics":         `{"data":{"items":[{"name":"token","status":"ok","tried":"the token","result":"it is there","advice":""},{"name":"relay_udp","status":"failed","tried":"DTLS to relay.example:4433","result":"no answer within 5 s","advice":"Let UDP port 4433 out."}]}}`,
		"POST /api/v1/login-links":         `{"data":{"url":"http://127.0.0.1:37271/login#ABC","expires_at":"2026-05-04T10:20:30Z"}}`,
		"GET /api/v1/config":               `{"data":{"config_file":"/etc/adit/adit.toml","config_file_exists":true,"state_dir":"/var/lib/adit","settings":[{"key":"http_listen","value":"127.0.0.1:37271","source":"default"}],"error":{"message":"must be 1 to 65535","line":3,"key":"tunnel[0].local_port"}}}`,
	}}
	d.Server = httptest.NewServer(http.HandlerFunc(d.serve))
	t.Cleanup(d.Close)
	dir := t.TempDir()
	info := `{"connect_addr":"` + strings.TrimPrefix(d.URL, "http://") + `"}`
	if err := os.WriteFile(filepath.Join(dir, "runtime.json"), []byte(info), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ADIT_STATE_DIR", dir)
	t.Setenv("ADIT_CONFIG_DIR", dir)
	return d
}

func (d *fakeDaemon) serve(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Method + " " + r.URL.Path
	d.mu.Lock()
	answer, ok := d.answers[key]
	if r.URL.Path != "/healthz" {
		d.asked = append(d.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
	}
	d.mu.Unlock()
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		answer = `{"error":{"code":"not_found","message":"there is no ` + r.URL.Path + `"}}`
	case strings.HasPrefix(answer, `{"error"`):
		w.WriteHeader(http.StatusBadRequest)
	}
	fmt.Fprint(w, answer)
}

func (d *fakeDaemon) note(request string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, request)
}

func (d *fakeDaemon) set(key, answer string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers[key] = answer
}

func (d *fakeDaemon) requests() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.asked...)
}
