package localapi

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// raw sends text as it is and returns the answer's status, and its body.
func raw(t *testing.T, addr, text string) (int, string) {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("answer to %q: %v", text, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestOnlyOwnNamesInTheHostHeader(t *testing.T) {
	r := serve(t, func(c *Config) { c.AllowedHosts = []string{"nas.example", "proxy.example:8443"} })
	port := r.addr[strings.LastIndexByte(r.addr, ':')+1:]
	for host, want := range map[string]int{
		"127.0.0.1:" + port:                   200,
		"127.0.0.1":                           200,
		"localhost:" + port:                   200,
		"LocalHost:" + port:                   200,
		"[::1]:" + port:                       200,
		"[0:0:0:0:0:0:0:1]:" + port:           200,
		"nas.example":                         200,
		"NAS.example:" + port:                 200,
		"nas.example:81":                      200,
		"proxy.example:8443":                  200,
		"proxy.example":                       403,
		"proxy.example:8444":                  403,
		"evil.example":                        403,
		"evil.example:" + port:                403,
		"127.0.0.1:1":                         403,
		"localhost.:" + port:                  403,
		"127.0.0.1.:" + port:                  403,
		"nas.example.":                        403,
		"localhost.evil.example:" + port:      403,
		"127.0.0.1.evil.example:" + port:      403,
		"127.0.0.1.nip.io":                    403,
		"evil.localhost:" + port:              403,
		"localhost@evil.example:" + port:      403,
		"evil.example@127.0.0.1:" + port:      403,
		"user:127.0.0.1@127.0.0.1:" + port:    403,
		"127.1:" + port:                       403,
		"127.0.0.01:" + port:                  403,
		"0x7f000001:" + port:                  403,
		"2130706433:" + port:                  403,
		"127.0.0.2:" + port:                   403,
		"0.0.0.0:" + port:                     403,
		"[::]:" + port:                        403,
		"[::ffff:127.0.0.1]:" + port:          403,
		"[::ffff:7f00:1]:" + port:             403,
		"[::1%25lo]:" + port:                  403,
		"[fe80::1%lo]:" + port:                403,
		"::1":                                 403,
		"[::1":                                403,
		"[::1]evil:" + port:                   403,
		"localhost:":                          403,
		"localhost:0" + port:                  403,
		"localhost:+" + port:                  403,
		"localhost:99999":                     403,
		"localhost:" + port + ":" + port:      403,
		"localhost,evil.example":              403,
		"localhost/evil.example":              403,
		"localhost#evil.example":              403,
		"localhost%2eevil.example":            403,
		"xn--lcalhost-b4a:" + port:            403,
		".localhost":                          403,
		"local_host":                          403,
		"-localhost":                          403,
		strings.Repeat("a", 300) + ".example": 403,
	} {
		// Also the probe and the page: every listener's every path needs it.
		for _, path := range []string{"/api/v1/status", "/healthz", "/metrics", "/", "/login"} {
			got, body := raw(t, r.addr, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
			// What is no Host at all is refused by net/http already.
			if got != want && !(want == 403 && got == 400) {
				t.Errorf("Host %q on %s: got status %d, want %d; body %s", host, path, got, want, body)
			}
		}
	}
	for name, text := range map[string]string{
		"no Host":                 "GET /api/v1/status HTTP/1.0\r\n\r\n",
		"two Hosts":               "GET /api/v1/status HTTP/1.1\r\nHost: " + r.addr + "\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
		"the whole server":        "OPTIONS * HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
		"foreign absolute target": "GET http://evil.example/api/v1/status HTTP/1.1\r\nHost: " + r.addr + "\r\nConnection: close\r\n\r\n",
	} {
		if got, body := raw(t, r.addr, text); got != 403 && got != 400 {
			t.Errorf("%s: got status %d, want 403 or 400; body %s", name, got, body)
		}
	}
	two := "GET /api/v1/status HTTP/1.1\r\nHost: " + r.addr + "\r\nOrigin: " + r.url + "\r\nOrigin: https://evil.example\r\nConnection: close\r\n\r\n"
	if got, body := raw(t, r.addr, two); got != 403 {
		t.Errorf("two Origins: got status %d, want 403; body %s", got, body)
	}
	// Nobody is believed who says what the Host was.
	for _, header := range []string{"X-Forwarded-Host", "X-Host", "X-Original-Host", "Forwarded"} {
		text := "GET /api/v1/status HTTP/1.1\r\nHost: evil.example\r\n" + header + ": localhost\r\nConnection: close\r\n\r\n"
		if got, _ := raw(t, r.addr, text); got != 403 {
			t.Errorf("%s: got status %d, want 403", header, got)
		}
	}
}

func TestForeignPagesAreRefused(t *testing.T) {
	const allowed = "https://console.example"
	r := serve(t, func(c *Config) { c.AllowedOrigins = []string{"HTTPS://Console.example:443/"} })
	own := "http://" + r.addr
	form := "application/x-www-form-urlencoded"
	for _, c := range []struct {
		name, method, path string
		header             map[string]string
		want               int
	}{
		{"curl", "GET", "/api/v1/status", nil, 200},
		{"curl changes", "POST", "/api/v1/pause", nil, 200},
		{"own page", "GET", "/api/v1/status", map[string]string{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}, 200},
		{"own page changes", "POST", "/api/v1/pause", map[string]string{"Origin": own, "Sec-Fetch-Site": "same-origin"}, 200},
		{"address bar", "GET", "/api/v1/status", map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},
		{"allowed console reads", "GET", "/api/v1/status", map[string]string{"Origin": allowed, "Sec-Fetch-Site": "cross-site"}, 200},
		{"allowed console changes", "POST", "/api/v1/pause", map[string]string{"Origin": allowed, "Sec-Fetch-Site": "cross-site"}, 200},
		{"link to the page", "GET", "/", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200},

		{"cors read", "GET", "/api/v1/status", map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}, 403},
		{"no-cors read", "GET", "/api/v1/status", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403},
		{"script include", "GET", "/api/v1/requests.har", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, 403},
		{"another port of this host", "GET", "/api/v1/status", map[string]string{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"}, 403},
		{"another port of this host changes", "POST", "/api/v1/pause", map[string]string{"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}, 403},
		{"form", "POST", "/api/v1/pause", map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Content-Type": form}, 403},
		{"form of an old browser", "POST", "/api/v1/pause", map[string]string{"Origin": "https://evil.example", "Content-Type": form}, 403},
		{"sandboxed frame", "POST", "/api/v1/pause", map[string]string{"Origin": "null"}, 403},
		{"link to the API", "GET", "/api/v1/requests.har", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 403},
		{"frame of the page", "GET", "/", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403},
		{"script of the page", "GET", "/login.js", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "script"}, 403},
		{"events", "GET", "/api/v1/events", map[string]string{"Origin": "https://evil.example", "Accept": "text/event-stream"}, 403},
		{"WebSocket", "GET", "/api/v1/events", map[string]string{"Origin": "https://evil.example", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}, 403},
		{"own address with user", "POST", "/api/v1/pause", map[string]string{"Origin": "http://" + r.addr + "@evil.example"}, 403},
		{"own address as prefix", "POST", "/api/v1/pause", map[string]string{"Origin": own + ".evil.example"}, 403},
		{"own address with path", "POST", "/api/v1/pause", map[string]string{"Origin": own + "/x"}, 403},
		{"extension", "POST", "/api/v1/pause", map[string]string{"Origin": "chrome-extension://abc"}, 403},
		{"allowed console without TLS", "POST", "/api/v1/pause", map[string]string{"Origin": "http://console.example"}, 403},
		{"below the allowed console", "GET", "/api/v1/status", map[string]string{"Origin": "https://evil.console.example"}, 403},
		{"preflight", "OPTIONS", "/api/v1/pause", map[string]string{"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}, 403},
		{"no preflight", "OPTIONS", "/api/v1/pause", nil, 405},
	} {
		req, err := http.NewRequest(c.method, r.url+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range c.header {
			req.Header.Set(name, value)
		}
		resp, err := plainClient.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s: got status %d, want %d", c.name, resp.StatusCode, c.want)
		}
		got := resp.Header.Get("Access-Control-Allow-Origin")
		if want := map[bool]string{true: allowed}[c.header["Origin"] == allowed]; got != want {
			t.Errorf("%s: got Access-Control-Allow-Origin %q, want %q", c.name, got, want)
		}
		if got := resp.Header.Get("Access-Control-Allow-Credentials"); got != "" {
			t.Errorf("%s: got Access-Control-Allow-Credentials %q, want none", c.name, got)
		}
		if csp := resp.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: got Content-Security-Policy %q", c.name, csp)
		}
	}
}

func TestAllowedConsolePassesThePreflight(t *testing.T) {
	r := serve(t, func(c *Config) {
		c.AllowedOrigins = []string{"https://console.example"}
		c.BearerToken = "a long enough bearer token" // a preflight carries none
	})
	req, err := http.NewRequest("OPTIONS", r.url+"/api/v1/tunnels", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Origin": "https://console.example", "Access-Control-Request-Method": "POST",
		"Access-Control-Request-Headers": "authorization,content-type", "Access-Control-Request-Private-Network": "true",
	} {
		req.Header.Set(name, value)
	}
	resp, err := plainClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 204 {
		t.Errorf("got status %d, want 204", resp.StatusCode)
	}
	for name, want := range map[string]string{
		"Access-Control-Allow-Origin":          "https://console.example",
		"Access-Control-Allow-Private-Network": "true",
		"Access-Control-Allow-Methods":         "GET, HEAD, POST, PUT, PATCH, DELETE",
		"Access-Control-Allow-Headers":         "Authorization, Content-Type, If-Match, If-None-Match, Last-Event-ID",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("got %s %q, want %q", name, got, want)
		}
	}
}

func TestOnlyThisMachineIsAnswered(t *testing.T) {
	loopback, wide := netip.MustParseAddrPort("127.0.0.1:37271"), netip.MustParseAddrPort("0.0.0.0:37271")
	for _, c := range []struct {
		remote string
		listen netip.AddrPort
		want   bool
	}{
		{"127.0.0.1:5", loopback, true},
		{"[::1]:5", loopback, true},
		{"[::ffff:127.0.0.1]:5", loopback, true},
		{"172.17.0.2:5", loopback, false}, // a container, through the host's forwarding
		{"192.168.1.2:5", loopback, false},
		{"[fe80::1%eth0]:5", loopback, false},
		{"", loopback, false},
		{"192.168.1.2:5", wide, true},
	} {
		if err := checkPeer(c.remote, c.listen); (err == nil) != c.want {
			t.Errorf("%s on %s: got %v, want allowed %t", c.remote, c.listen, err, c.want)
		}
	}
}

func TestAContainerIsRefusedOnEveryPath(t *testing.T) {
	s, err := New(Config{Agent: newFakeAgent(), Events: newFakeFeed().begin})
	if err != nil {
		t.Fatal(err)
	}
	h := s.guarded(netip.MustParseAddrPort("127.0.0.1:37271"))
	for _, path := range []string{"/", "/healthz", "/metrics", "/api/v1/status", "/api/v1/events"} {
		for remote, want := range map[string]int{"172.17.0.2:40000": 403, "127.0.0.1:40000": 200} {
			if path == "/api/v1/events" && want == 200 {
				continue // it would not end
			}
			req := httptest.NewRequest("GET", "http://127.0.0.1:37271"+path, nil)
			req.RemoteAddr = remote
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, req)
			if rec.Code != want {
				t.Errorf("%s from %s: got status %d, want %d", path, remote, rec.Code, want)
			}
		}
	}
}

func TestListeningBeyondLoopbackNeedsBearer(t *testing.T) {
	for _, c := range []struct {
		addr   string
		bearer bool
		want   bool
	}{
		{"127.0.0.1:1", false, true},
		{"[::1]:1", false, true},
		{"127.8.8.8:1", false, true},
		{"0.0.0.0:1", false, false},
		{"[::]:1", false, false},
		{"192.168.1.2:1", false, false},
		{"0.0.0.0:1", true, true},
		{"192.168.1.2:1", true, true},
	} {
		if err := CheckListen(netip.MustParseAddrPort(c.addr), c.bearer); (err == nil) != c.want {
			t.Errorf("%s with bearer %t: got %v, want allowed %t", c.addr, c.bearer, err, c.want)
		}
	}
	ln, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Agent: newFakeAgent(), Events: newFakeFeed().begin})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Serve(context.Background(), ln); err == nil || !strings.Contains(err.Error(), "bearer_token") {
		t.Errorf("Serve: got %v, want a refusal that names bearer_token", err)
	}
	if c, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		c.Close()
		t.Error("the refused listener is still open")
	}
}

// TestListeningEverywhereIsSaidInWords: the system calls 0.0.0.0 [::], which is not
// what was asked for.
func TestListeningEverywhereIsSaidInWords(t *testing.T) {
	for addr, want := range map[string]string{
		"0.0.0.0:37271":   "listening at all addresses, port 37271, would open",
		"[::]:37271":      "listening at all addresses, port 37271, would open",
		"192.0.2.1:37271": "listening at 192.0.2.1:37271 would open",
	} {
		if err := CheckListen(netip.MustParseAddrPort(addr), false); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", addr, err, want)
		}
	}
}

// TestShortBearerIsNotForOtherMachines: on loopback, where the API is open
// without one, it is told of.
func TestShortBearerIsNotForOtherMachines(t *testing.T) {
	for token, short := range map[string]bool{"x": true, "1234567": true, "12345678": false, "a long enough bearer token": false} {
		var log bytes.Buffer
		s, err := New(Config{
			Agent: newFakeAgent(), Events: newFakeFeed().begin, BearerToken: token, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.Contains(log.String(), "can be guessed"); told != short || strings.Contains(log.String(), "="+token) {
			t.Errorf("%q: the log says %q", token, &log)
		}
		if _, err := s.MayListen(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}); err != nil {
			t.Errorf("%q on loopback: %v", token, err)
		}
		_, err = s.MayListen(&net.TCPAddr{IP: net.IPv4zero, Port: 1})
		if refused := err != nil && strings.Contains(err.Error(), "bearer_token"); refused != short {
			t.Errorf("%q beyond loopback: got %v, want refused %t", token, err, short)
		}
	}
}

func TestPathTricksLeadNowhere(t *testing.T) {
	r := serve(t, func(c *Config) { c.BearerToken = "a long enough bearer token" })
	for path, want := range map[string]int{
		"/api/v1/status":                401,
		"//api/v1/status":               404,
		"/api//v1/status":               401,
		"/API/v1/status":                404,
		"/api/v1/../v1/status":          401,
		"/./api/v1/status":              404,
		"/x/../api/v1/status":           404,
		"/%2e%2e/api/v1/status":         404,
		"/api%2fv1%2fstatus":            401,
		"/%61pi/v1/status":              401,
		"/api/v1/status%00":             401,
		"/api/v1/status;a=b":            401,
		"/metrics":                      401,
		"/metrics/":                     404,
		"/healthz/../api/v1/status":     404,
		"/api/v1/session/../status":     401,
		"/login/../../etc/passwd":       404,
		"/..%2f..%2fetc%2fpasswd":       404,
		"/assets/..%5c..%5cwin.ini":     404,
		"/pages/login.html":             404,
		"/.git/config":                  404,
		"/api/v1/tunnels/t_1%2fstart":   401,
		"/api/v1/tunnels/..%2fstatus":   401,
		"/api/v1/openapi.yaml?x=/login": 401,
	} {
		got, body := raw(t, r.addr, "GET "+path+" HTTP/1.1\r\nHost: "+r.addr+"\r\nConnection: close\r\n\r\n")
		if got != want {
			t.Errorf("%s: got status %d, want %d; body %s", path, got, want, body)
		}
		if strings.Contains(body, "relay.example") {
			t.Errorf("%s: the status was told to a stranger: %s", path, body)
		}
	}
}

func TestNewNamesTheSettingAtFault(t *testing.T) {
	wide := filepath.Join(t.TempDir(), "wide")
	if err := os.WriteFile(wide, []byte("\xff\xfea\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{BearerTokenFile: wide}, "save it as UTF-8"},
		{Config{AllowedOrigins: []string{"*"}}, "local_api.allowed_origins[0]"},
		{Config{AllowedOrigins: []string{"https://a.example", "https://b.example/x"}}, "local_api.allowed_origins[1]"},
		{Config{AllowedOrigins: []string{"null"}}, "local_api.allowed_origins[0]"},
		{Config{AllowedHosts: []string{"*.example"}}, "local_api.allowed_hosts[0]"},
		{Config{AllowedHosts: []string{"a.example", "http://b.example"}}, "local_api.allowed_hosts[1]"},
		{Config{BearerTokenFile: "/nonexistent/token"}, "local_api.bearer_token_file"},
		{Config{BearerTokenFile: "/nonexistent/token"}, "name a file that adit can read"},
	} {
		c.cfg.Agent, c.cfg.Events = newFakeAgent(), newFakeFeed().begin
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error that names %s", err, c.want)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"localhost", "127.0.0.1:80", "[::1]:80", "a@b", "1.2.3.4.", "[::1%25lo]", "0x7f.1", "LOCALHOST:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, ok := parseHost(s)
		if !ok {
			return
		}
		// What passes reads the same to the standard library's parser.
		text := h.name
		if strings.Contains(text, ":") {
			text = "[" + text + "]"
		}
		if h.port != 0 {
			text = net.JoinHostPort(h.name, fmt.Sprint(h.port))
		}
		again, ok := parseHost(text)
		if !ok || again != h {
			t.Fatalf("%q gives %+v, and its own text %q gives %+v, %t", s, h, text, again, ok)
		}
		if strings.ContainsAny(h.name, "@/\\?#%, \t\r\n[]") || h.name != strings.ToLower(h.name) {
			t.Fatalf("%q gives the name %q", s, h.name)
		}
	})
}
