package console

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"adit/internal/openapicheck"
)

// ask is one request of the contract test.
type ask struct {
	method, path, target, body string // target, if not path
	status                     int
	code, field                string
}

const one = "/api/v1/policies/{target}"

func asks() []ask {
	api := "/api/v1/"
	return []ask{
		{"GET", "/healthz", "", "", 200, "", ""},
		{"GET", "/readyz", "", "", 200, "", ""},
		{"GET", "/metrics", "", "", 200, "", ""},
		{"GET", api + "openapi.yaml", "", "", 200, "", ""},
		{"GET", api + "session", "", "", 200, "", ""},
		{"GET", api + "status", "", "", 200, "", ""},
		{"GET", api + "figures", "", "", 200, "", ""},
		{"GET", api + "figures", api + "figures?span=day", "", 200, "", ""},
		{"GET", api + "figures", api + "figures?span=year", "", 400, "invalid_parameter", "span"},
		{"GET", api + "clients", "", "", 200, "", ""},
		{"POST", api + "clients", "", `{"name":"shop"}`, 201, "", ""},
		{"POST", api + "clients", "", `{"nme":"shop"}`, 400, "invalid_parameter", "nme"},
		{"POST", api + "clients", "", `{"name":`, 400, "invalid_json", ""},
		{"POST", api + "clients", "", `{} {}`, 400, "invalid_json", ""},
		{"POST", api + "clients", "", `[]`, 400, "invalid_json", ""},
		{"POST", api + "clients", "", `{"name":5}`, 400, "invalid_parameter", "name"},
		{"POST", api + "clients", "", `{"name":"shop","scope":{"tunnels":"5"}}`, 400, "invalid_parameter", "scope.tunnels"},
		{"POST", api + "clients", "", `{"name":"shop","scope":{"monthly_bytes":1.5}}`, 400, "invalid_parameter", "scope.monthly_bytes"},
		{"POST", api + "clients", "", `{"name":"shop","scope":{"expires_at":"2031-01-01"}}`, 400, "invalid_parameter", ""},
		{"POST", api + "clients", "", `{"name":"shop","scope":{"expires_at":5}}`, 400, "invalid_parameter", ""},
		{"POST", api + "clients", "", `{"name":"shop","scope":{"types":["http"],"types":[]}}`, 400, "invalid_parameter", "types"},
		{"POST", api + "clients", "", `{"name":"` + strings.Repeat("a", 1<<20) + `"}`, 413, "payload_too_large", ""},
		{"POST", api + "clients/{name}/rotate", api + "clients/shop/rotate", "", 200, "", ""},
		{"POST", api + "clients/{name}/rotate", api + "clients/shop/rotate", `{"overlap_seconds":-1}`, 400, "invalid_parameter", "overlap_seconds"},
		{"POST", api + "clients/{name}/rotate", api + "clients/nobody/rotate", "", 404, "not_found", ""},
		{"POST", api + "clients/{name}/revoke", api + "clients/shop/revoke", "", 204, "", ""},
		{"POST", api + "clients/{name}/revoke", api + "clients/nobody/revoke", "", 404, "not_found", ""},
		{"DELETE", api + "clients/{name}", api + "clients/shop", "", 204, "", ""},
		{"DELETE", api + "clients/{name}", api + "clients/nobody", "", 404, "not_found", ""},
		{"GET", api + "sessions", "", "", 200, "", ""},
		{"GET", api + "endpoints", "", "", 200, "", ""},
		{"GET", api + "claims", "", "", 200, "", ""},
		{"GET", api + "errors", "", "", 200, "", ""},
		{"POST", api + "sign-ins/end", "", `{"user":"ann@example.com"}`, 200, "", ""},
		{"POST", api + "sign-ins/end", "", `{"name":"ann@example.com"}`, 400, "invalid_parameter", "name"},
		{"GET", api + "policies", "", "", 200, "", ""},
		{"GET", one, api + "policies/shop", "", 200, "", ""},
		{"GET", one, api + "policies/nobody", "", 404, "not_found", ""},
		{"PUT", one, api + "policies/shop", `{"deny":["1.2.3.4"]}`, 200, "", ""},
		{"PUT", one, api + "policies/shop", `{`, 400, "invalid_json", ""},
		{"PUT", one, api + "policies/shop", `{"deny":["1.2.3.4"],"Deny":[]}`, 400, "invalid_parameter", "Deny"},
		{"DELETE", one, api + "policies/shop", "", 204, "", ""},
		{"DELETE", one, api + "policies/nobody", "", 404, "not_found", ""},
		{"POST", one + "/explain", api + "policies/shop/explain", `{"address":"1.2.3.4"}`, 200, "", ""},
		{"GET", api + "access", "", "", 200, "", ""},
		{"GET", api + "access", api + "access?limit=0", "", 400, "invalid_parameter", "limit"},
		{"GET", api + "access", "", "", 200, "", ""},
		{"GET", api + "access", api + "access?nothing=x", "", 400, "invalid_parameter", "nothing"},
		{"GET", api + "access", api + "access?status=4xx&since=2026-05-04T10:20:30Z&limit=7", "", 200, "", ""},
		{"GET", api + "access", api + "access?limit=1&limit=2", "", 400, "invalid_parameter", "limit"},
		{"GET", api + "access", api + "access?limit=%zz", "", 400, "invalid_parameter", ""},
		{"GET", api + "access", api + "access?status=404xx", "", 400, "invalid_parameter", "status"},
		{"GET", api + "access", api + "access?status=4", "", 400, "invalid_parameter", "status"},
		{"GET", api + "access", api + "access?since=today", "", 400, "invalid_parameter", "since"},
		{"GET", api + "access", api + "access?until=2026-05-04", "", 400, "invalid_parameter", "until"},
		{"GET", api + "access/export", api + "access/export?cursor=x", "", 400, "invalid_parameter", "cursor"},
		{"GET", api + "access/live", api + "access/live?limit=1", "", 400, "invalid_parameter", "limit"},
		{"GET", api + "access/export", "", "", 200, "", ""},
		{"GET", api + "access/export", api + "access/export?format=csv", "", 200, "", ""},
		{"GET", api + "access/export", api + "access/export?format=x", "", 400, "invalid_parameter", "format"},
		{"GET", api + "access/live", "", "", 200, "", ""},
		{"GET", api + "clients/{name}", api + "clients/shop", "", 200, "", ""},
		{"GET", api + "clients/{name}", api + "clients/nobody", "", 404, "not_found", ""},
		{"PATCH", api + "clients/{name}", api + "clients/shop", `{"scope":{"tunnels":1}}`, 200, "", ""},
		{"PATCH", api + "clients/{name}", api + "clients/shop", `{}`, 400, "invalid_parameter", "scope"},
		{"GET", api + "audit", "", "", 200, "", ""},
		{"GET", api + "audit", api + "audit?limit=0", "", 400, "invalid_parameter", "limit"},
		{"GET", api + "audit", api + "audit?before=nonsense", "", 400, "invalid_parameter", "before"},
		{"GET", api + "audit", api + "audit?before=0", "", 400, "invalid_parameter", "before"},
		{"GET", api + "audit", api + "audit?before=7&limit=1000", "", 200, "", ""},
		{"GET", api + "audit", api + "audit?q=shop&since=2026-11-01T00:00:00Z&until=2026-12-01T00:00:00Z", "", 200, "", ""},
		{"GET", api + "audit", api + "audit?since=yesterday", "", 400, "invalid_parameter", "since"},
		{"GET", api + "audit", api + "audit?q=" + strings.Repeat("x", 257), "", 400, "invalid_parameter", "q"},
		{"GET", api + "audit/verify", "", "", 200, "", ""},
		{"GET", api + "audit/verify", api + "audit/verify?head=" + strings.Repeat("5d", 32), "", 200, "", ""},
		{"GET", api + "audit/verify", api + "audit/verify?before=1", "", 400, "invalid_parameter", "before"},
		{"GET", api + "audit/export", "", "", 200, "", ""},
		{"GET", api + "sinks", "", "", 200, "", ""},
		{"GET", api + "sinks/{name}", api + "sinks/siem", "", 200, "", ""},
		{"GET", api + "sinks/{name}", api + "sinks/nobody", "", 404, "not_found", ""},
		{"PUT", api + "sinks/{name}", api + "sinks/siem", `{"type":"webhook"}`, 200, "", ""},
		{"PUT", api + "sinks/{name}", api + "sinks/siem", `{`, 400, "invalid_json", ""},
		{"DELETE", api + "sinks/{name}", api + "sinks/siem", "", 204, "", ""},
		{"DELETE", api + "sinks/{name}", api + "sinks/nobody", "", 404, "not_found", ""},
		{"POST", api + "sinks/{name}/test", api + "sinks/siem/test", "", 200, "", ""},
		{"GET", api + "domains", "", "", 200, "", ""},
		{"GET", api + "settings", "", "", 200, "", ""},
		{"GET", api + "nodes", "", "", 200, "", ""},
		{"GET", api + "backup", "", "", 200, "", ""},
		{"GET", api + "logins", "", "", 200, "", ""},
		{"DELETE", api + "logins/{id}", api + "logins/none", "", 404, "not_found", ""},
		{"GET", api + "accounts", "", "", 200, "", ""},
		{"POST", api + "accounts", "", `{"name":"bob","role":"viewer","password":"` + testPass + `"}`, 201, "", ""},
		{"POST", api + "accounts", "", `{"name":"bob"}`, 400, "invalid_parameter", "role"},
		{"PATCH", api + "accounts/{name}", api + "accounts/bob", `{"disabled":true}`, 200, "", ""},
		{"PATCH", api + "accounts/{name}", api + "accounts/bob", `{"role":"x"}`, 400, "invalid_parameter", "role"},
		{"PATCH", api + "accounts/{name}", api + "accounts/zoe", `{}`, 404, "not_found", ""},
		{"DELETE", api + "accounts/{name}", api + "accounts/ann", "", 400, "invalid_parameter", "name"},
		{"DELETE", api + "accounts/{name}", api + "accounts/zoe", "", 404, "not_found", ""},
		{"DELETE", api + "accounts/{name}", api + "accounts/bob", "", 204, "", ""},
		{"GET", api + "tokens", "", "", 200, "", ""},
		{"POST", api + "tokens", "", `{"name":"ci","scope":"read","expires_at":"2031-01-01T00:00:00Z"}`, 201, "", ""},
		{"POST", api + "tokens", "", `{"name":"ci","scope":"x"}`, 400, "invalid_parameter", "scope"},
		{"DELETE", api + "tokens/{id}", api + "tokens/none", "", 404, "not_found", ""},
		{"POST", api + "account/password", "", `{"password":"x"}`, 400, "invalid_parameter", "password"},
		{"POST", api + "account/totp", "", `{"password":"x"}`, 400, "invalid_parameter", "password"},
		{"POST", api + "account/totp", "", `{"password":"` + testPass + `"}`, 200, "", ""},
		{"PUT", api + "account/totp", "", `{"code":"1"}`, 400, "invalid_parameter", "code"},
		{"POST", api + "account/totp/remove", "", `{"password":"x"}`, 400, "invalid_parameter", "password"},
		{"POST", api + "account/totp/remove", "", `{"password":"` + testPass + `"}`, 204, "", ""},
		{"POST", api + "session", "", `{}`, 400, "invalid_parameter", "name"},
		{"POST", api + "session", "", `{"name":"ann","password":"x"}`, 401, "wrong_login", ""},
		{"POST", api + "setup", "", `{"code":"x"}`, 409, "conflict", ""},
		{"POST", api + "setup", "", `{"x":"x"}`, 400, "invalid_parameter", "x"},
		{"GET", api + "nothing", "", "", 404, "not_found", ""},
		{"PUT", api + "clients", "", "", 405, "method_not_allowed", ""},
		{"POST", "/healthz", "", "", 405, "method_not_allowed", ""},
	}
}

func (b *browser) hold(t *testing.T, d *openapicheck.Document, a ask) {
	t.Helper()
	target := a.target
	if target == "" {
		target = a.path
	}
	resp, answer := b.send(a.method, target, a.body)
	short := a.body[:min(len(a.body), 60)]
	if resp.StatusCode != a.status {
		t.Errorf("%s %s %s: got status %d, want %d: %s", a.method, target, short, resp.StatusCode, a.status, answer)
		return
	}
	d.Answer(t, a.path, a.method, resp, answer)
	if a.code == "" {
		return
	}
	var got struct {
		Error struct{ Code, Message, Field string }
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Errorf("%s %s: %v in %s", a.method, target, err, answer)
	}
	if got.Error.Code != a.code || got.Error.Field != a.field || strings.Contains(got.Error.Message, "/secret") {
		t.Errorf("%s %s %s: got %+v, want %s of %q", a.method, target, short, got.Error, a.code, a.field)
	}
}

// needsSomeone reports whether a route of the API asks who calls.
func needsSomeone(r *running, pattern string) bool {
	for _, own := range r.ownRoutes() {
		if own.pattern == pattern {
			return own.need != needNothing
		}
	}
	return strings.Contains(pattern, " /api/")
}

func TestEveryAnswerFitsTheDocument(t *testing.T) {
	d := openapicheck.Load(t, openAPI)
	r := serve(t)
	owner := r.owner()
	for _, a := range asks() {
		owner.hold(t, d, a)
	}
	stranger := &browser{r: r}
	foreign := &browser{r: r, cookie: owner.cookie, header: http.Header{"Origin": {"https://evil.example"}, "Sec-Fetch-Site": {"cross-site"}}}
	for tag, a := range map[string]ask{
		`"old"`:      {"PUT", one, "/api/v1/policies/shop", `{}`, 412, "precondition_failed", ""},
		`W/"x","o"`:  {"DELETE", one, "/api/v1/policies/shop", "", 412, "precondition_failed", ""},
		`"old", "1"`: {"PUT", one, "/api/v1/policies/shop", `{}`, 200, "", ""},
		"old":        {"PUT", one, "/api/v1/policies/shop", `{}`, 400, "invalid_parameter", "If-Match"},
	} {
		(&browser{r: r, cookie: owner.cookie, header: http.Header{"If-Match": {tag}}}).hold(t, d, a)
	}
	typed := &browser{r: r, cookie: owner.cookie, header: http.Header{"Content-Type": {"text/plain"}}}
	seen := map[string]bool{}
	for _, a := range asks() {
		if a.status >= 400 || seen[a.method+a.path] || d.At(t, "paths", a.path, strings.ToLower(a.method)) == nil {
			continue
		}
		seen[a.method+a.path] = true
		if sec, ok := d.At(t, "paths", a.path, strings.ToLower(a.method))["security"]; !ok || sec == nil {
			a.status, a.code, a.field = 401, "unauthorized", ""
			stranger.hold(t, d, a)
		}
		if strings.HasPrefix(a.path, "/api/") {
			a.status, a.code, a.field = 403, "forbidden_origin", ""
			foreign.hold(t, d, a)
		}
		if pattern := a.method + " " + a.path; needsSomeone(r, pattern) && !slices.Contains(takesQuery, pattern) {
			b := a
			b.target, b.status, b.code, b.field = cmp.Or(a.target, a.path)+"?limit=1", 400, "invalid_parameter", "limit"
			owner.hold(t, d, b)
		}
		if a.body != "" {
			a.status, a.code = 415, "unsupported_media_type"
			typed.hold(t, d, a)
		}
	}
	r.relay.mu.Lock()
	r.relay.fail = errFire
	r.relay.mu.Unlock()
	owner.hold(t, d, ask{"POST", "/api/v1/clients", "", `{"name":"shop"}`, 500, "internal", ""})
}

func TestDocumentAndTableHaveTheSamePaths(t *testing.T) {
	d := openapicheck.Load(t, openAPI)
	r := serve(t)
	admin := &browser{r: r, token: testToken}
	fill := strings.NewReplacer("{name}", "x", "{id}", "x", "{target}", "x")
	for _, operation := range d.Operations(t) {
		method, path, _ := strings.Cut(operation, " ")
		resp, body := admin.send(method, fill.Replace(path), "")
		missing := resp.StatusCode == 405 || resp.StatusCode == 404 && strings.Contains(string(body), "nothing at this path")
		if missing {
			t.Errorf("%s is in the document alone", operation)
		}
	}
}

func TestPageIsServedWithItsGuards(t *testing.T) {
	r := serve(t)
	b := &browser{r: r, header: http.Header{"Accept": {"text/html"}}}
	for path, want := range map[string]int{"/": 200, "/index.html": 200, "/assets/a-12345678.js": 200, "/clients": 200, "/nothing.js": 404, "/assets/": 200, "/../go.mod": 404} {
		resp, body := b.send("GET", path, "")
		if resp.StatusCode != want && !(path == "/../go.mod" && resp.StatusCode < 400) {
			t.Errorf("%s: got status %d, want %d: %s", path, resp.StatusCode, want, body)
		}
		csp := resp.Header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "default-src 'none'") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
	}
	resp, _ := b.send("GET", "/assets/a-12345678.js", "")
	if !strings.Contains(resp.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("asset: %v", resp.Header)
	}
	if resp, _ := b.send("POST", "/", "{}"); resp.StatusCode != 405 {
		t.Errorf("POST /: status %d", resp.StatusCode)
	}
}
