package localapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"adit/internal/logring"
	"adit/internal/openapicheck"
	"adit/tunnel/agent/refusal"
)

func loadDocument(tb testing.TB) *openapicheck.Document {
	tb.Helper()
	return openapicheck.Load(tb, openAPI)
}

// ask is one request of the contract test.
type ask struct {
	method, path, target string // target, if not path
	body                 string
	kind                 string // Content-Type; empty is JSON for a body
	header               http.Header
	host                 string
	refuse               error
	status               int
	code                 string
	field                string
	message              string // a part of it
}

func refused(code string) error { return &refusal.Error{Code: code, Message: "because of " + code} }

const tunnelBody = `{"type":"https","mode":"standard","local_ip":"127.0.0.1","local_port":3000,"domain":"shop"}`

func successes() []ask {
	one, req := "/api/v1/tunnels/{id}", "/api/v1/requests/{id}"
	return []ask{
		{method: "GET", path: "/healthz", status: 200},
		{method: "HEAD", path: "/healthz", status: 200},
		{method: "GET", path: "/metrics", status: 200},
		{method: "GET", path: "/api/v1/openapi.yaml", status: 200},
		{method: "GET", path: "/api/v1/auth/status", status: 200},
		{method: "POST", path: "/api/v1/auth/configure", body: `{"auth_token":"adit_x"}`, status: 200},
		{method: "POST", path: "/api/v1/auth/configure", body: `{"auth_token":"adit_x","client_id":"nas"}`, kind: "application/json; charset=UTF-8", status: 200},
		{method: "DELETE", path: "/api/v1/auth", status: 204},
		{method: "GET", path: "/api/v1/status", status: 200},
		{method: "GET", path: "/api/v1/config", status: 200},
		{method: "POST", path: "/api/v1/pause", status: 200},
		{method: "POST", path: "/api/v1/resume", status: 200},
		{method: "POST", path: "/api/v1/reconnect", body: "{}", status: 200},
		{method: "GET", path: "/api/v1/endpoints", status: 200},
		{method: "GET", path: "/api/v1/tunnels", status: 200},
		{method: "POST", path: "/api/v1/tunnels", body: tunnelBody, status: 201},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":1,"inspect":false,"ephemeral":true}`, status: 201},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":2,"type":"http","request_headers":{"X-Env":"prod"},"response_headers":{"server":"","Cache-Control":"no-store"}}`, status: 201},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":2,"paths":[{"path":"/api","local_port":1},{"path":"/web","local_ip":"::1","local_port":2,"local_scheme":"h2c","host_header":"a","strip":true}]}`, status: 201},
		{method: "POST", path: "/api/v1/tunnels", body: `{"local_port":2,"policy":{"deny":["203.0.113.0/24"],"basic_auth":[{"name":"ann","password":"hush"}]}}`, status: 201},
		{method: "GET", path: one, target: "/api/v1/tunnels/t_1", status: 200},
		{method: "PATCH", path: one, target: "/api/v1/tunnels/t_1", body: `{"paths":[]}`, status: 200},
		{method: "PATCH", path: one, target: "/api/v1/tunnels/t_1", body: `{"local_port":3001}`, status: 200},
		{method: "POST", path: one + "/start", target: "/api/v1/tunnels/t_1/start", status: 200},
		{method: "POST", path: one + "/stop", target: "/api/v1/tunnels/t_1/stop", status: 200},
		{method: "POST", path: one + "/hold", target: "/api/v1/tunnels/t_1/hold", status: 200},
		{method: "GET", path: one + "/policy", target: "/api/v1/tunnels/t_1/policy", status: 200},
		{method: "PUT", path: one + "/policy", target: "/api/v1/tunnels/t_1/policy", body: `{"deny":["203.0.113.0/24"],"rate":5}`, status: 200},
		{method: "PUT", path: one + "/policy", target: "/api/v1/tunnels/t_1/policy", body: `{}`, status: 200},
		{method: "DELETE", path: one, target: "/api/v1/tunnels/t_1", status: 204},
		{method: "GET", path: "/api/v1/visits", status: 200},
		{method: "GET", path: "/api/v1/invitations", status: 200},
		{method: "GET", path: visited, target: "/api/v1/visits/nas/ssh", status: 200},
		{method: "GET", path: "/api/v1/requests", status: 200},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?tunnel_id=t_1&kind=http&method=get&status=4xx&q=a&since=2026-05-04T10:20:30Z&until=2026-05-04T10:20:30.5%2B02:00&before=req_9&limit=10000", status: 200},
		{method: "GET", path: req, target: "/api/v1/requests/r_1?reveal=true", status: 200},
		{method: "GET", path: req, target: "/api/v1/requests/r_2", status: 200},
		{method: "POST", path: req + "/replay", target: "/api/v1/requests/r_1/replay", status: 200},
		{method: "POST", path: req + "/replay", target: "/api/v1/requests/r_1/replay", body: `{"method":"PUT","headers":[{"name":"A","value":"b"}],"body":""}`, status: 200},
		{method: "DELETE", path: "/api/v1/requests", status: 204},
		{method: "GET", path: "/api/v1/requests.har", target: "/api/v1/requests.har?reveal=false", status: 200},
		{method: "POST", path: "/api/v1/requests.har", body: `{"log":{"version":"1.2","creator":{},"entries":[]}}`, status: 200},
		{method: "GET", path: "/api/v1/logs", target: "/api/v1/logs?level=debug&limit=5", status: 200},
		{method: "POST", path: "/api/v1/diagnostics", status: 200},
		{method: "POST", path: "/api/v1/speed", status: 200},
		{method: "POST", path: "/api/v1/login-links", status: 201},
		{method: "DELETE", path: "/api/v1/session", status: 204},
	}
}

// visited is the path of a private tunnel; visitHeader asks for a connection to it.
const visited = "/api/v1/visits/{client}/{name}"

var visitHeader = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"adit-visit"}}

func failures() []ask {
	tunnels, configure := "/api/v1/tunnels", "/api/v1/auth/configure"
	one := "/api/v1/tunnels/{id}"
	asks := []ask{
		{method: "POST", path: configure, body: `{`, status: 400, code: "invalid_json"},
		{method: "POST", path: configure, status: 400, code: "invalid_json"},
		{method: "POST", path: configure, body: `[]`, status: 400, code: "invalid_json"},
		{method: "POST", path: configure, body: `null`, status: 400, code: "invalid_json"},
		{method: "POST", path: configure, body: `{"auth_token":"a"} {}`, status: 400, code: "invalid_json"},
		{method: "POST", path: configure, body: "{\"auth_token\":\"\xff\"}", status: 400, code: "invalid_json"},
		{method: "POST", path: configure, body: `{}`, status: 400, code: "invalid_parameter", field: "auth_token"},
		{method: "POST", path: configure, body: `{"auth_token":7}`, status: 400, code: "invalid_parameter", field: "auth_token"},
		{method: "POST", path: configure, body: `{"auth_token":"a","relay":"evil:1"}`, status: 400, code: "invalid_parameter", field: "relay"},
		{method: "POST", path: configure, body: `{"AUTH_TOKEN":"a"}`, status: 400, code: "invalid_parameter", field: "AUTH_TOKEN"},
		{method: "POST", path: configure, body: `{"auth_token":"a","auth_token":"b"}`, status: 400, code: "invalid_parameter", field: "auth_token"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"request_headers":["X-Env: a"]}`, status: 400, code: "invalid_parameter", field: "request_headers", message: "request_headers must be an object, not array"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"response_headers":{"X-Env":["a"]}}`, status: 400, code: "invalid_parameter", field: "response_headers.X-Env", message: "response_headers.X-Env must be a string, not array"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"paths":{"/api":8080}}`, status: 400, code: "invalid_parameter", field: "paths", message: "paths must be a list, not object"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"paths":[{"path":"/api","local_port":"8080"}]}`, status: 400, code: "invalid_parameter", field: "paths.local_port", message: "paths.local_port must be a whole number, not string"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"paths":["/api"]}`, status: 400, code: "invalid_parameter", field: "paths", message: "paths must be an object, not string"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"paths":[{"path":"/api","port":8080}]}`, status: 400, code: "invalid_parameter", field: "port"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"paths":[{"path":"/api","Local_Port":8080}]}`, status: 400, code: "invalid_parameter", field: "Local_Port"},
		{method: "POST", path: tunnels, body: `{"local_port":1,"paths":[{"path":"/api","path":"/x","local_port":8080}]}`, status: 400, code: "invalid_parameter", field: "path", message: "path is given twice"},
		{method: "POST", path: configure, body: `{"auth_token":"a"}`, refuse: refused("invalid_token"), status: 400, code: "invalid_token"},
		{method: "POST", path: configure, body: `{"auth_token":"a"}`, refuse: refused("relay_rejected"), status: 400, code: "relay_rejected"},
		{method: "POST", path: configure, body: `{"auth_token":"a"}`, refuse: refused("relay_unreachable"), status: 503, code: "relay_unreachable"},
		{method: "POST", path: tunnels, body: `{}`, status: 400, code: "invalid_parameter", field: "local_port"},
		{method: "POST", path: tunnels, body: `{"local_port":0}`, status: 400, code: "invalid_parameter", field: "local_port"},
		{method: "POST", path: tunnels, body: `{"local_port":65536}`, status: 400, code: "invalid_parameter", field: "local_port"},
		{method: "POST", path: tunnels, body: `{"local_port":"80"}`, status: 400, code: "invalid_parameter", field: "local_port"},
		{method: "POST", path: tunnels, body: `{"local_port":80.5}`, status: 400, code: "invalid_parameter", field: "local_port"},
		{method: "POST", path: tunnels, body: `{"local_port":80,"remote_port":-1}`, status: 400, code: "invalid_parameter", field: "remote_port"},
		{method: "POST", path: tunnels, body: `{"local_port":80,"port":1}`, status: 400, code: "invalid_parameter", field: "port"},
		{method: "POST", path: tunnels, body: `{"local_port":80,"policy":{"deny":["192.0.2.1"],"deny":[]}}`, status: 400, code: "invalid_parameter", field: "deny", message: "deny is given twice"},
		{method: "POST", path: tunnels, body: tunnelBody, refuse: refused("not_configured"), status: 400, code: "not_configured"},
		{method: "POST", path: tunnels, body: tunnelBody, refuse: &refusal.Error{Code: "relay_rejected", Message: "the name is taken", Field: "domain"}, status: 400, code: "relay_rejected", field: "domain"},
		{method: "PATCH", path: one, target: tunnels + "/t_1", body: `{"local_port":0}`, status: 400, code: "invalid_parameter", field: "local_port"},
		{method: "PATCH", path: one, target: tunnels + "/t_1", body: `{"id":"x"}`, status: 400, code: "invalid_parameter", field: "id"},
		{method: "POST", path: one + "/hold", target: tunnels + "/nope/hold", status: 404, code: "not_found"},
		{method: "POST", path: one + "/hold", target: tunnels + "/t_1/hold", refuse: refused("invalid_parameter"), status: 400, code: "invalid_parameter"},
		{method: "GET", path: one + "/hold", target: tunnels + "/t_1/hold", status: 405, code: "method_not_allowed"},
		{method: "GET", path: "/api/v1/invitations", refuse: refused("relay_rejected"), status: 400, code: "relay_rejected"},
		{method: "GET", path: "/api/v1/invitations", refuse: refused("relay_unreachable"), status: 503, code: "relay_unreachable"},
		{method: "GET", path: visited, target: "/api/v1/visits/nas/ssh", refuse: refused("relay_rejected"), status: 400, code: "relay_rejected"},
		{method: "GET", path: visited, target: "/api/v1/visits/nas/ssh", refuse: refused("relay_unreachable"), status: 503, code: "relay_unreachable"},
		{method: "POST", path: visited, target: "/api/v1/visits/nas/ssh", status: 400, code: "invalid_parameter", field: "Upgrade"},
		{method: "POST", path: visited, target: "/api/v1/visits/nas/ssh", header: visitHeader, refuse: refused("relay_rejected"), status: 400, code: "relay_rejected"},
		{method: "POST", path: visited, target: "/api/v1/visits/nas/ssh", header: visitHeader, refuse: refused("relay_unreachable"), status: 503, code: "relay_unreachable"},
		{method: "PUT", path: one + "/policy", target: tunnels + "/t_1/policy", body: `[]`, status: 400, code: "invalid_json"},
		{method: "PUT", path: one + "/policy", target: tunnels + "/t_1/policy", body: `{}`, refuse: refused("relay_rejected"), status: 400, code: "relay_rejected"},
		{
			method: "PUT", path: one + "/policy", target: tunnels + "/t_1/policy", body: `{}`, header: http.Header{"If-Match": {`"0"`}},
			refuse: refused("precondition_failed"), status: 412, code: "precondition_failed",
		},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?limit=0", status: 400, code: "invalid_parameter", field: "limit"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?status=9xx", status: 400, code: "invalid_parameter", field: "status"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?kind=x", status: 400, code: "invalid_parameter", field: "kind"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?tunnel=x", status: 400, code: "invalid_parameter", field: "tunnel"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?q=a&q=b", status: 400, code: "invalid_parameter", field: "q"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?since=today", status: 400, code: "invalid_parameter", field: "since"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?before=nonsense", status: 400, code: "invalid_parameter", field: "before"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?before=req_-1", status: 400, code: "invalid_parameter", field: "before"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?before=req_99999999999999999999", status: 400, code: "invalid_parameter", field: "before"},
		{method: "GET", path: "/api/v1/requests", target: "/api/v1/requests?limit=%zz", status: 400, code: "invalid_parameter"},
		{method: "DELETE", path: "/api/v1/requests", target: "/api/v1/requests?tunnel_id=t_1", status: 400, code: "invalid_parameter", field: "tunnel_id"},
		{method: "GET", path: "/api/v1/requests.har", target: "/api/v1/requests.har?before=x", status: 400, code: "invalid_parameter", field: "before"},
		{method: "GET", path: "/api/v1/logs", target: "/api/v1/logs?limit=many", status: 400, code: "invalid_parameter", field: "limit"},
		{method: "GET", path: "/api/v1/logs", target: "/api/v1/logs?since=yesterday", status: 400, code: "invalid_parameter", field: "since"},
		{method: "GET", path: "/api/v1/requests.har", target: "/api/v1/requests.har?reveal=1", status: 400, code: "invalid_parameter", field: "reveal"},
		{method: "POST", path: "/api/v1/requests.har", body: `{}`, status: 400, code: "invalid_parameter"},
		{method: "GET", path: "/api/v1/requests/{id}", target: "/api/v1/requests/r_1?reveal=yes", status: 400, code: "invalid_parameter", field: "reveal"},
		{method: "POST", path: "/api/v1/requests/{id}/replay", target: "/api/v1/requests/r_1/replay", body: `{"body":"a","body_base64":"YQ=="}`, status: 400, code: "invalid_parameter", field: "body_base64"},
		{method: "POST", path: "/api/v1/requests/{id}/replay", target: "/api/v1/requests/r_1/replay", body: `{"headers":[{"name":"a","valeu":"b"}]}`, status: 400, code: "invalid_parameter", field: "valeu"},
		{method: "GET", path: "/api/v1/logs", target: "/api/v1/logs?level=loud", status: 400, code: "invalid_parameter", field: "level"},
		{method: "GET", path: "/api/v1/events", target: "/api/v1/events?last_event_id=x", status: 400, code: "invalid_parameter", field: "last_event_id"},
		{method: "GET", path: "/api/v1/events", header: http.Header{"Last-Event-Id": {"-1"}}, status: 400, code: "invalid_parameter", field: "Last-Event-ID"},
		{method: "POST", path: "/api/v1/session", body: `{}{`, status: 400, code: "invalid_json"},
		{method: "POST", path: "/api/v1/pause", refuse: refused("not_configured"), status: 400, code: "not_configured"},
		{method: "POST", path: "/api/v1/resume", refuse: refused("not_configured"), status: 400, code: "not_configured"},
		{method: "POST", path: "/api/v1/reconnect", body: `{"a":1}`, status: 400, code: "invalid_parameter", field: "a"},
		{method: "POST", path: "/api/v1/speed", body: `{"a":1}`, status: 400, code: "invalid_parameter", field: "a"},
		{method: "POST", path: "/api/v1/speed", refuse: refused("relay_rejected"), status: 400, code: "relay_rejected"},
		{method: "POST", path: "/api/v1/speed", refuse: refused("control_busy"), status: 409, code: "control_busy"},
		{method: "POST", path: "/api/v1/speed", refuse: refused("relay_unreachable"), status: 503, code: "relay_unreachable"},
		{method: "GET", path: one, target: tunnels + "/nope", status: 404, code: "not_found"},
		{method: "GET", path: "/api/v1/requests/{id}", target: "/api/v1/requests/nope", status: 404, code: "not_found"},
		{method: "POST", path: "/api/v1/requests/{id}/replay", target: "/api/v1/requests/nope/replay", status: 404, code: "not_found"},
		{method: "GET", path: "/api/v1/nothing", status: 404, code: "not_found"},
		{method: "GET", path: "/api/v2/status", status: 404, code: "not_found"},
		{method: "GET", path: "/api", status: 404, code: "not_found"},
		{method: "GET", path: "/api/v1/status/", status: 404, code: "not_found"},
		{method: "POST", path: "/api/v1/status", body: "{}", status: 405, code: "method_not_allowed"},
		{method: "GET", path: "/api/v1/auth/configure", status: 405, code: "method_not_allowed"},
		{method: "GET", path: "/api/v1/pause", status: 405, code: "method_not_allowed"},
		{method: "PUT", path: tunnels, status: 405, code: "method_not_allowed"},
		{method: "TRACE", path: "/healthz", status: 405, code: "method_not_allowed"},
		{method: "GET", path: "/api/v1/auth/status", refuse: nil, host: "evil.example", status: 403, code: "forbidden_host"},
		{method: "POST", path: tunnels, body: tunnelBody, refuse: errors.New("the disk is on fire at /secret"), status: 500, code: "internal"},
		{method: "POST", path: tunnels, body: tunnelBody, refuse: fmt.Errorf("replace: %w", &fs.PathError{Op: "write", Path: "/secret", Err: syscall.ENOSPC}), status: 500, code: "internal", message: syscall.ENOSPC.Error()},
	}
	// What every request with a body refuses.
	for _, a := range []ask{
		{method: "POST", path: configure, body: `{"auth_token":"a"}`},
		{method: "POST", path: tunnels, body: tunnelBody},
		{method: "PATCH", path: one, target: tunnels + "/t_1", body: `{"local_port":1}`},
		{method: "PUT", path: one + "/policy", target: tunnels + "/t_1/policy", body: `{"rate":5}`},
		{method: "POST", path: "/api/v1/requests/{id}/replay", target: "/api/v1/requests/r_1/replay", body: `{}`},
		{method: "POST", path: "/api/v1/requests.har", body: `{"log":{}}`},
		{method: "POST", path: "/api/v1/session", body: `{"code":"x"}`},
	} {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=latin1", "application/jsonx", "none"} {
			b := a
			b.kind, b.status, b.code = kind, 415, "unsupported_media_type"
			asks = append(asks, b)
		}
		a.body, a.status, a.code = `{"auth_token":"`+strings.Repeat("a", 1<<20)+`"}`, 413, "payload_too_large"
		asks = append(asks, a)
	}
	// What every change refuses.
	for _, a := range []ask{
		{method: "POST", path: configure, body: `{"auth_token":"a"}`},
		{method: "DELETE", path: "/api/v1/auth"},
		{method: "POST", path: tunnels, body: tunnelBody},
		{method: "PATCH", path: one, target: tunnels + "/t_1", body: `{"local_port":1}`},
		{method: "POST", path: one + "/start", target: tunnels + "/t_1/start"},
		{method: "POST", path: one + "/stop", target: tunnels + "/t_1/stop"},
		{method: "DELETE", path: one, target: tunnels + "/t_1"},
		{method: "PUT", path: one + "/policy", target: tunnels + "/t_1/policy", body: `{"rate":5}`},
		{method: "GET", path: one + "/policy", target: tunnels + "/t_1/policy"}, // asked of the relay, too
	} {
		a.refuse, a.status, a.code = refused("control_busy"), 409, "control_busy"
		if a.method != "GET" {
			asks = append(asks, a)
		}
		if a.path == "/api/v1/auth" {
			continue
		}
		a.refuse, a.status, a.code = refused("relay_unreachable"), 503, "relay_unreachable"
		asks = append(asks, a)
		if a.target != "" {
			a.refuse, a.status, a.code = refused("relay_rejected"), 400, "relay_rejected"
			asks = append(asks, a)
			a.refuse, a.status, a.code = nil, 404, "not_found"
			a.target = strings.Replace(a.target, "t_1", "nope", 1)
			asks = append(asks, a)
		}
	}
	// What every path without parameters refuses.
	for _, a := range successes() {
		method, path := a.method, strings.ReplaceAll(a.path, "{id}", ":id")
		if method == "HEAD" || !strings.HasPrefix(path, Prefix) || slices.Contains(takesQuery, method+" "+path) {
			continue
		}
		if a.target == "" {
			a.target = a.path
		}
		a.target += "?limit=1"
		a.status, a.code, a.field = 400, "invalid_parameter", "limit"
		asks = append(asks, a)
	}
	// What every path refuses.
	for _, a := range successes() {
		a.status, a.code = 403, "forbidden_origin"
		a.header = http.Header{"Origin": {"https://evil.example"}}
		asks = append(asks, a)
	}
	return asks
}

func (r *running) ask(t *testing.T, d *openapicheck.Document, a ask) *http.Response {
	t.Helper()
	r.agent.setRefusal(a.refuse)
	defer r.agent.setRefusal(nil)
	target := a.target
	if target == "" {
		target = a.path
	}
	var body io.Reader
	if a.body != "" {
		body = strings.NewReader(a.body)
	}
	req, err := http.NewRequest(a.method, r.url+target, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.header != nil {
		req.Header = a.header.Clone()
	}
	switch {
	case a.kind == "none":
	case a.kind != "":
		req.Header.Set("Content-Type", a.kind)
	case a.body != "":
		req.Header.Set("Content-Type", "application/json")
	}
	req.Host = a.host
	resp, err := plainClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", a.method, target, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", a.method, target, err)
	}
	short := a.body[:min(len(a.body), 60)]
	if resp.StatusCode != a.status {
		t.Fatalf("%s %s %s: got status %d, want %d; body %s", a.method, target, short, resp.StatusCode, a.status, answer)
	}
	d.Answer(t, a.path, a.method, resp, answer)
	if a.code != "" && a.method != http.MethodHead {
		var got struct {
			Error struct{ Code, Message, Field string }
		}
		if err := json.Unmarshal(answer, &got); err != nil {
			t.Fatalf("%s %s: %v in %q", a.method, target, err, answer)
		}
		if got.Error.Code != a.code || got.Error.Field != a.field {
			t.Errorf("%s %s %s: got code %s of field %q, want %s of %q", a.method, target, short, got.Error.Code, got.Error.Field, a.code, a.field)
		}
		if !strings.Contains(got.Error.Message, a.message) {
			t.Errorf("%s %s: got message %q, want %q in it", a.method, target, got.Error.Message, a.message)
		}
		if strings.Contains(got.Error.Message, "/secret") {
			t.Errorf("%s %s: the answer tells the inside: %s", a.method, target, got.Error.Message)
		}
	}
	return resp
}

func TestEveryAnswerFitsTheDocument(t *testing.T) {
	d := loadDocument(t)
	r := serve(t, func(c *Config) {
		c.Logs = func(slog.Level, time.Time, int) []logring.Line {
			return []logring.Line{{Time: fakeTime, Level: "info", Message: "session is up", Fields: map[string]any{"n": 1}}}
		}
		c.Configuration = func() Configuration {
			return Configuration{
				ConfigFile: "/etc/adit/adit.toml", StateDir: "/var/lib/adit",
				Settings: []Setting{{Key: "local_api.bearer_token", Value: "(set)", Source: "file", Secret: true}, {Key: "http_listen", Value: DefaultListen, Source: "default"}},
				Error:    &ConfigError{Message: "must be 1 to 65535", Line: 3, Key: "tunnel[0].local_port"},
			}
		}
	})
	for _, a := range append(successes(), failures()...) {
		r.ask(t, d, a)
	}

	protected := serve(t, func(c *Config) { c.BearerToken = "a long enough bearer token" })
	for _, a := range successes() {
		if a.path == HealthPath {
			continue
		}
		a.status, a.code = 401, "unauthorized"
		protected.ask(t, d, a)
	}
	protected.ask(t, d, ask{method: "GET", path: "/api/v1/events", status: 401, code: "unauthorized"})
	protected.ask(t, d, ask{method: "GET", path: "/api/v1/events", header: http.Header{"Origin": {"null"}}, status: 403, code: "forbidden_origin"})
	protected.ask(t, d, ask{method: "POST", path: visited, target: "/api/v1/visits/nas/ssh", header: visitHeader, status: 401, code: "unauthorized"})
	protected.ask(t, d, ask{method: "POST", path: visited, target: "/api/v1/visits/nas/ssh", header: http.Header{"Origin": {"null"}}, status: 403, code: "forbidden_origin"})
	protected.ask(t, d, ask{method: "POST", path: "/api/v1/session", body: `{"code":"nope"}`, status: 401, code: "unauthorized"})
	protected.ask(t, d, ask{method: "POST", path: "/api/v1/session", body: `{"code":"nope"}`, header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, status: 403, code: "forbidden_origin"})

	// Nothing is described that was not seen, but for what has tests of its own.
	elsewhere := []string{
		"GET /api/v1/events 200", "GET /api/v1/events 503", "POST /api/v1/tunnels/{id}/hold 503", "POST /api/v1/session 204",
		"POST /api/v1/visits/{client}/{name} 101",
		"POST /api/v1/reconnect 401", "POST /api/v1/login-links 401",
	}
	for path := range d.At(t, "paths") {
		for method, operation := range d.At(t, "paths", path) {
			o, ok := operation.(map[string]any)
			if !ok {
				continue
			}
			for status := range o["responses"].(map[string]any) {
				key := strings.ToUpper(method) + " " + path + " " + status
				if !d.Seen[key] && !slices.Contains(elsewhere, key) {
					t.Errorf("the document says %s, which no request got", key)
				}
			}
		}
	}
}

// documented is a path of the table as the document has it.
func documented(path string) string {
	return regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}")
}

func TestDocumentAndTableHaveTheSamePaths(t *testing.T) {
	d := loadDocument(t)
	r := serve(t, nil)
	table := make(map[string]bool)
	for _, row := range r.table() {
		path := documented(row.path)
		method := strings.ToLower(strings.TrimSpace(row.method))
		table[method+" "+path] = true
		if d.At(t, "paths", path, method) == nil {
			t.Errorf("%s %s is not in the document", method, path)
		}
	}
	for path := range d.At(t, "paths") {
		for method, operation := range d.At(t, "paths", path) {
			if _, ok := operation.(map[string]any); ok && method != "head" && !table[method+" "+path] {
				t.Errorf("%s %s is in the document alone", method, path)
			}
		}
	}
}

// TestPageHasEveryPath keeps the table of docs/local-api.md whole.
func TestPageHasEveryPath(t *testing.T) {
	page, err := os.ReadFile("../docs/local-api.md")
	if err != nil {
		t.Fatal(err)
	}
	r := serve(t, nil)
	for _, row := range r.table() {
		path, ok := strings.CutPrefix(documented(row.path), "/api/v1")
		if !ok || path == "/openapi.yaml" {
			continue
		}
		if !strings.Contains(string(page), "`"+path+"`") {
			t.Errorf("%s %s is not in docs/local-api.md", row.method, row.path)
		}
	}
}

func TestExamplesFitTheirSchemas(t *testing.T) {
	d := loadDocument(t)
	for name, s := range d.At(t, "components", "schemas") {
		compiled := d.Schema(t, name)
		examples, _ := s.(map[string]any)["examples"].([]any)
		for _, example := range examples {
			b, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			if err != nil {
				t.Fatal(err)
			}
			if err := compiled.Validate(value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
