package relay

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"adit/tunnel/relay/datadir"
)

// ask makes a request to the console and returns status and body.
func (r *testRelay) ask(tb testing.TB, method, path, body string, header map[string]string) (int, string, http.Header) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, "http://"+r.Addrs().Console+path, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, v := range header {
		if name == "Host" {
			req.Host = v
		}
		req.Header.Set(name, v)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), resp.Header
}

// net/http answers this itself, before any guard, unless it is told not to.
func TestConsoleGuardsOptionsOfTheWholeServer(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	conn, err := net.Dial("tcp", r.Addrs().Console)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
	answer, _ := io.ReadAll(conn)
	if !strings.Contains(string(answer), "forbidden_host") {
		t.Errorf("got %q, want forbidden_host", answer)
	}
}

func TestConsoleRefusesARequestThatIsNoneInTheEnvelope(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	conn, err := net.Dial("tcp", r.Addrs().Console)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "GET /api/v1/status HTTP/1.1\r\n\r\n")
	answer, _ := io.ReadAll(conn)
	for _, want := range []string{"HTTP/1.1 400 ", `{"error":{"code":"invalid_parameter"`, "\r\nX-Frame-Options: DENY\r\n"} {
		if !strings.Contains(string(answer), want) {
			t.Errorf("got %q, want %q in it", answer, want)
		}
	}
}

func TestAdminAPI(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	admin := "Bearer " + r.AdminToken()
	for _, c := range []struct {
		name, method, path, body string
		header                   map[string]string
		status                   int
		says                     string
	}{
		{"probe without a token", "GET", "/healthz", "", map[string]string{"Authorization": ""}, 200, `"status":"ok"`},
		{"without a token", "GET", "/api/v1/status", "", map[string]string{"Authorization": ""}, 401, "unauthorized"},
		{"wrong token", "GET", "/api/v1/status", "", map[string]string{"Authorization": "Bearer x"}, 401, "unauthorized"},
		{"other scheme", "GET", "/api/v1/status", "", map[string]string{"Authorization": "Basic x"}, 401, "unauthorized"},
		{"status", "GET", "/api/v1/status", "", nil, 200, `"domain":"relay.test"`},
		{"foreign name", "GET", "/api/v1/status", "", map[string]string{"Host": "evil.example"}, 403, "forbidden_host"},
		{"name that begins well", "GET", "/api/v1/status", "", map[string]string{"Host": "localhost.evil.example"}, 403, "forbidden_host"},
		{"name with a user", "GET", "/api/v1/status", "", map[string]string{"Host": "localhost:1@evil.example"}, 403, "forbidden_host"},
		{"foreign page", "POST", "/api/v1/clients", `{"name":"a"}`, map[string]string{"Origin": "https://evil.example"}, 403, "forbidden_origin"},
		{"foreign page, by fetch", "POST", "/api/v1/clients", `{"name":"a"}`, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "forbidden_origin"},
		{"foreign page reads", "GET", "/api/v1/status", "", map[string]string{"Sec-Fetch-Site": "cross-site"}, 403, "forbidden_origin"},
		{"no such path", "GET", "/api/v1/nothing", "", nil, 404, "not_found"},
		{"no such method", "PUT", "/api/v1/clients", `{}`, nil, 405, "method_not_allowed"},
		{"not JSON", "POST", "/api/v1/clients", `{"name":`, nil, 400, "invalid_json"},
		{"unknown field", "POST", "/api/v1/clients", `{"nme":"a"}`, nil, 400, `"field":"nme"`},
		{"other media", "POST", "/api/v1/clients", `name=a`, map[string]string{"Content-Type": "text/plain"}, 415, "unsupported_media_type"},
		{"too large", "POST", "/api/v1/clients", `{"name":"` + strings.Repeat("a", 2<<20) + `"}`, nil, 413, "payload_too_large"},
		{"bad name", "POST", "/api/v1/clients", `{"name":"a b"}`, nil, 400, `"field":"name"`},
		{"add", "POST", "/api/v1/clients", `{"name":"shop"}`, nil, 201, `"auth_token":"adit_`},
		{"add twice", "POST", "/api/v1/clients", `{"name":"shop"}`, nil, 400, "already"},
		{"rotate", "POST", "/api/v1/clients/shop/rotate", `{"overlap_seconds":60}`, nil, 200, `"auth_token":"adit_`},
		{"rotate, bad overlap", "POST", "/api/v1/clients/shop/rotate", `{"overlap_seconds":-1}`, nil, 400, "overlap_seconds"},
		{"list", "GET", "/api/v1/clients", "", nil, 200, `"name":"shop"`},
		{"revoke", "POST", "/api/v1/clients/shop/revoke", "", nil, 204, ""},
		{"revoke twice", "DELETE", "/api/v1/clients/shop", "", nil, 204, ""},
		{"rotate a revoked one", "POST", "/api/v1/clients/shop/rotate", "", nil, 400, "revoked"},
		{"revoke nobody", "DELETE", "/api/v1/clients/nobody", "", nil, 404, "not_found"},
		{"sessions", "GET", "/api/v1/sessions", "", nil, 200, `{"data":{"items":[]}}`},
		{"endpoints", "GET", "/api/v1/endpoints", "", nil, 200, `{"data":{"items":[]}}`},
		{"claims", "GET", "/api/v1/claims", "", nil, 200, `{"data":{"items":[]}}`},
		{"no policy", "GET", "/api/v1/policies/shop", "", nil, 404, "not_found"},
		{"bad policy", "PUT", "/api/v1/policies/shop", `{"deny":["x"]}`, nil, 400, `"field":"deny[0]"`},
		{"bad target", "PUT", "/api/v1/policies/tcp.99999", `{}`, nil, 400, `"field":"target"`},
		{"policy", "PUT", "/api/v1/policies/shop", `{"basic_auth":[{"name":"a","password":"p"}]}`, nil, 200, `"target":"shop.relay.test"`},
		{"explain", "POST", "/api/v1/policies/shop/explain", `{"address":"1.2.3.4"}`, nil, 200, `"rule":"basic_auth"`},
		{"explain, bad address", "POST", "/api/v1/policies/shop/explain", `{"address":"x"}`, nil, 400, `"field":"address"`},
		{"delete policy", "DELETE", "/api/v1/policies/shop", "", nil, 204, ""},
		{"access", "GET", "/api/v1/access?limit=5&status=4xx", "", nil, 200, `"items"`},
		{"access, bad", "GET", "/api/v1/access?limit=x", "", nil, 400, `"field":"limit"`},
		{"access, unknown", "GET", "/api/v1/access?nothing=x", "", nil, 400, `"field":"nothing"`},
	} {
		header := map[string]string{"Authorization": admin}
		maps.Copy(header, c.header)
		status, body, _ := r.ask(t, c.method, c.path, c.body, header)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: status %d, %s; want %d, %s", c.name, status, body, c.status, c.says)
		}
		if strings.Contains(body, `"hash"`) || strings.Contains(body, "$2a$") {
			t.Errorf("%s: a hash is shown: %s", c.name, body)
		}
	}
}

func TestGuessingTheAdminTokenIsSlowedDown(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	last := 0
	for range 15 {
		last, _, _ = r.ask(t, "GET", "/api/v1/status", "", map[string]string{"Authorization": "Bearer guess"})
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("the fifteenth guess: status %d", last)
	}
}

func TestSetupCodeMakesTheFirstAdministratorOnce(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := startRelay(t, cfg)
	file := filepath.Join(cfg.DataDir, datadir.SetupCodeFile)
	if stat, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && stat.Mode().Perm() != 0o600 {
		t.Errorf("set-up code: %v, %v", stat, err)
	}
	body := `{"code":"` + r.SetupCode() + `","name":"ann","password":"correct horse battery"}`
	status, answer, header := r.ask(t, "POST", "/api/v1/setup", body, nil)
	if status != 200 || !strings.Contains(answer, `"role":"administrator"`) {
		t.Fatalf("set-up: status %d, %s", status, answer)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("the set-up code's file is left: %v", err)
	}
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	if status, answer, _ := r.ask(t, "GET", "/api/v1/clients", "", map[string]string{"Cookie": cookie}); status != 200 {
		t.Errorf("with the cookie: status %d, %s", status, answer)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	again := startRelay(t, cfg)
	if again.SetupCode() != "" {
		t.Error("a set-up code after the set-up")
	}
	if status, answer, _ := again.ask(t, "GET", "/api/v1/accounts", "", map[string]string{"Cookie": cookie}); status != 200 || !strings.Contains(answer, `"ann"`) {
		t.Errorf("after a restart: status %d, %s", status, answer)
	}
}

func TestDataFolderKeepsSecrets(t *testing.T) {
	cfg := testConfig(t.TempDir())
	r := startRelay(t, cfg)
	token := r.client(t, "shop")
	info, err := datadir.ReadRuntime(cfg.DataDir)
	if err != nil || info.ConsoleURL != "http://"+r.Addrs().Console {
		t.Errorf("runtime: %+v, %v", info, err)
	}
	first := r.AdminToken()
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.ReadRuntime(cfg.DataDir); err == nil {
		t.Error("the runtime file is left behind")
	}
	if stat, err := os.Stat(filepath.Join(cfg.DataDir, datadir.AdminTokenFile)); err != nil || runtime.GOOS != "windows" && stat.Mode().Perm() != 0o600 {
		t.Errorf("admin token: %v, %v", stat, err)
	}
	secrets := map[string]string{"the client's secret": string(token.Secret[:]), "the token": token.Reveal()}
	filepath.WalkDir(cfg.DataDir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for name, s := range secrets {
			if strings.Contains(string(data), s) {
				t.Errorf("%s is in %s", name, path)
			}
		}
		return nil
	})
	if again := startRelay(t, cfg); again.AdminToken() != first {
		t.Error("the admin token changed with a restart")
	}
}
