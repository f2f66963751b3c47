package relay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/internal/require"
	"adit/tunnel/relay/console"
	"adit/tunnel/wire"
)

const (
	hookSecret = "It's a Secret to Everybody"
	hookPolicy = `{"basic_auth":[{"name":"ann","password":"secret"}],"webhooks":[{"path":"/hooks/github","provider":"github","secrets":["an older secret","` + hookSecret + `"]}]}`
)

// hubSignature is what GitHub sends with a body.
func hubSignature(body []byte) string {
	mac := hmac.New(sha256.New, []byte(hookSecret))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// framed answers with everything that its origin sees of a request, the body as a
// checksum.
func framed(w http.ResponseWriter, r *http.Request) {
	sum := sha256.New()
	n, err := io.Copy(sum, r.Body)
	var names []string
	for name := range r.Header {
		if name != "X-Hub-Signature-256" && name != "Expect" && !strings.HasPrefix(name, "X-Forwarded-") && name != "Forwarded" {
			names = append(names, name+"="+strings.Join(r.Header[name], ","))
		}
	}
	slices.Sort(names)
	fmt.Fprintf(w, "%s %s %d %v %v; %d bytes %x, %v; %v\n", r.Method, r.URL, r.ContentLength, r.TransferEncoding, r.Trailer, n, sum.Sum(nil), err, names)
}

func packed(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	io.WriteString(w, text)
	w.Close()
	return out.Bytes()
}

// TestWebhooksReachOriginsAsTheyAre sends the same requests to a site without a policy
// and, signed, to one with a policy: over each version of HTTP, to origins over two of
// them.
func TestWebhooksReachOriginsAsTheyAre(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(framed))
	h2c := startH2C(t, http.HandlerFunc(framed))
	urls := map[string][2]string{}
	for _, scheme := range []string{wire.TypeHTTP, wire.TypeHTTPS} {
		for kind, origin := range map[string]string{"h1": startOrigin(t, http.HandlerFunc(framed)), "h2": h2c} {
			var pair [2]string
			for i, name := range []string{"open", "hook"} {
				name += "-" + scheme + "-" + kind
				pair[i] = s.agent.mustClaim(name, wire.Claim{Type: scheme, Domain: name, HTTP2: kind == "h2"}, origin).PublicURL
				if i == 1 {
					s.setPolicy(t, name, hookPolicy)
				}
			}
			urls[scheme+" to "+kind] = pair
		}
	}
	visitors := map[string]*http.Client{"http/1": s.visitor, "http/2": s.visitor, "http/3": s.visitor3(t)}
	bodies := map[string][]byte{"": nil, "text": []byte(`{"zen":"x"}`), "4096": bytes.Repeat([]byte("x"), 4096), "gzip": packed(strings.Repeat("zen ", 999)), "large": bytes.Repeat([]byte("0123456789abcdef"), 3<<16+1)}
	for version, visitor := range visitors {
		for kind, pair := range urls {
			if (version == "http/1") != strings.HasPrefix(kind, "http ") {
				continue
			}
			for name, body := range bodies {
				for _, way := range []string{"length", "chunks", "trailer", "continue", "get"} {
					ask := func(base, signed string) (int, string) {
						method, reader := http.MethodPost, io.Reader(bytes.NewReader(body))
						if way == "chunks" || way == "trailer" {
							reader = io.MultiReader(reader)
						}
						if way == "get" {
							method = http.MethodGet
						}
						req, err := http.NewRequestWithContext(t.Context(), method, base+"/hooks/github/x?a=b", reader)
						if err != nil {
							t.Fatal(err)
						}
						req.Header.Set("X-Hub-Signature-256", signed)
						if name == "gzip" {
							req.Header.Set("Content-Encoding", "gzip")
						}
						switch way {
						case "trailer":
							req.Trailer = http.Header{"X-Sum": {"4"}}
						case "continue":
							req.Header.Set("Expect", "100-continue")
						}
						resp, err := visitor.Do(req)
						if err != nil {
							t.Fatalf("%s, %s, %s, %s: %v", version, kind, name, way, err)
						}
						defer resp.Body.Close()
						answer, _ := io.ReadAll(resp.Body)
						return resp.StatusCode, string(answer)
					}
					_, want := ask(pair[0], "")
					if status, got := ask(pair[1], hubSignature(body)); status != 200 || got != want {
						t.Errorf("%s, %s, %q by %s: status %d; the origin got\n%swant\n%s", version, kind, name, way, status, got, want)
					}
					if status, got := ask(pair[1], hubSignature(append([]byte("y"), body...))); status != 401 || strings.Contains(got, "bytes") {
						t.Errorf("%s, %s, %q by %s with a wrong signature: status %d, %s", version, kind, name, way, status, got)
					}
				}
			}
		}
	}
	eventually(t, "no body is held", func() bool { return s.holding() == 0 })
}

// holding returns how much is held of all bodies.
func (s *site) holding() (n int64) {
	for _, ep := range s.edge.Endpoints() {
		n += ep.Holding()
	}
	return n
}

// hookSiteWith is hookSite with a short time for a webhook's body.
func hookSiteWith(t *testing.T, webhookTime time.Duration) *site {
	t.Helper()
	s := startSiteOn(t, startRelayWith(t, Options{Config: testConfig(t.TempDir()), webhookTime: webhookTime}), text("origin"))
	s.setPolicy(t, "shop", hookPolicy)
	return s
}

// hookSite returns a site whose policy has a password and a webhook.
func hookSite(t *testing.T, document string) *site {
	t.Helper()
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "origin: %s auth=%q user=%q", r.URL, r.Header.Get("Authorization"), r.Header.Get("X-Forwarded-User"))
	}))
	s.setPolicy(t, "shop", document)
	return s
}

// raw sends text to the site over HTTP/1 and returns the answer's head and body.
func (s *site) raw(t *testing.T, text string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", hostOf(t, s.http))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	io.WriteString(c, text)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	body, _ := io.ReadAll(resp.Body)
	return resp, string(body)
}

// TestWebhookIsAnOpenDoorAndNoMore uses a password for the rest of the site.
func TestWebhookIsAnOpenDoorAndNoMore(t *testing.T) {
	s := hookSite(t, hookPolicy)
	host := strings.TrimPrefix(s.http, "http://")
	signed := "Host: " + host + "\r\nX-Forwarded-User: eve\r\nX-Hub-Signature-256: " + hubSignature(nil) + "\r\nConnection: close\r\n"
	right := "Authorization: Basic YW5uOnNlY3JldA==\r\n"
	for _, c := range []struct {
		line, header string
		status       int
		rule         string
	}{
		{"GET /hooks/github HTTP/1.1", signed, 200, ""},
		{"GET /hooks/github/?x=/../ HTTP/1.1", signed, 200, ""},
		{"DELETE /hooks/github/a%20b HTTP/1.1", signed, 200, ""},
		{"GET http://" + host + "/hooks/github HTTP/1.1", signed, 200, ""},
		{"GET /hooks/github HTTP/1.1", signed + "Authorization: Basic YW5uOmd1ZXNz\r\n", 200, ""}, // a provider's own, for the origin
		{"GET /hooks/github HTTP/1.1", signed + "Upgrade: websocket\r\n", 200, ""},
		{"GET / HTTP/1.1", signed, 401, "basic_auth"},
		{"GET /hooks/githubs HTTP/1.1", signed, 401, "basic_auth"},
		{"GET /?/hooks/github HTTP/1.1", signed, 401, "basic_auth"},
		{"GET / HTTP/1.1", signed + right, 200, ""},
		{"OPTIONS * HTTP/1.1", signed, 401, "basic_auth"},
		{"OPTIONS http://" + host + " HTTP/1.1", signed, 401, "basic_auth"},
	} {
		resp, body := s.raw(t, c.line+"\r\n"+c.header+"\r\n")
		if resp.StatusCode != c.status || c.status == 200 != strings.HasPrefix(body, "origin") || strings.Contains(body, "eve") {
			t.Errorf("%s: status %d, want %d: %s", c.line, resp.StatusCode, c.status, body)
		}
		recorded(t, s.Relay, c.line, func(e wire.Access) bool { return e.Status == c.status && e.Refused == c.rule })
	}
	unsigned := "Host: " + host + "\r\n" + right + "Connection: close\r\n"
	for _, line := range []string{
		"GET /hooks/github HTTP/1.1", "HEAD /hooks/github/ HTTP/1.1", "OPTIONS /hooks/github HTTP/1.1", "GET http://" + host + "/hooks/github HTTP/1.1",
		"GET http://" + host + "/hooks/github?x HTTP/1.1", "TRACE /hooks/github HTTP/1.1", "PROPFIND /hooks/github/x HTTP/1.1",
	} {
		for _, header := range []string{unsigned, unsigned + "Upgrade: websocket\r\n", strings.Replace(signed, "sha256=", "sha256=0", 1), strings.Replace(signed, "sha256=", "sha1=", 1)} {
			resp, _ := s.raw(t, line+"\r\n"+header+"\r\n")
			if resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") != "Webhook-Signature" {
				t.Errorf("%s: status %d, %v", line, resp.StatusCode, resp.Header)
			}
			recorded(t, s.Relay, line, func(e wire.Access) bool { return e.Status == 401 && e.Refused == "webhooks" })
		}
	}
	for _, path := range []string{"//hooks/github", "/x/../hooks/github", "/hooks/github/../", "/hooks/github/..%2f", "/Hooks/GitHub", "/hooks%2Fgithub", "/hooks;x/github", `/hooks\github`} {
		for _, header := range []string{signed, unsigned, signed + right} {
			resp, _ := s.raw(t, "GET "+path+" HTTP/1.1\r\n"+header+"\r\n")
			if resp.StatusCode != 400 {
				t.Errorf("%s: status %d", path, resp.StatusCode)
			}
			recorded(t, s.Relay, path, func(e wire.Access) bool { return e.Status == 400 && e.Refused == "webhooks_path" })
		}
	}
}

// TestWebhookRulesComeInOrder checks that addresses and limits decide before a signature.
func TestWebhookRulesComeInOrder(t *testing.T) {
	s := hookSite(t, hookPolicy)
	hook := `"webhooks":[{"path":"/","provider":"github"}]`
	s.setPolicy(t, "shop", `{"webhooks":[{"path":"/","provider":"github","secrets":["`+hookSecret+`"]}]}`)
	post := func(length, size int) int {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.http, io.LimitReader(bytes.NewReader(make([]byte, size)), int64(size)))
		req.ContentLength = int64(length)
		req.Header.Set("X-Hub-Signature-256", hubSignature(make([]byte, size)))
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, c := range []struct {
		document           string
		length, size, want int
		rule               string
	}{
		{`{` + hook + `}`, 5, 5, 200, ""},
		{`{` + hook + `,"deny":["127.0.0.1"]}`, 5, 5, 403, "deny"},
		{`{` + hook + `,"max_body":4}`, 5, 5, 413, "max_body"},
		{`{` + hook + `,"max_body":4}`, -1, 5, 413, "max_body"},
		{`{` + hook + `,"max_body":5}`, -1, 5, 200, ""},
		{`{` + hook + `}`, -1, 32<<20 + 1, 413, "max_body"},
		{`{` + hook + `}`, 32<<20 + 1, 32<<20 + 1, 413, "max_body"},
		{`{` + hook + `,"max_body":99000000}`, -1, 32<<20 + 1, 413, "max_body"},
		{`{` + hook + `,"rate":0.001,"burst":1}`, 5, 5, 200, ""},
		{`{` + hook + `,"rate":0.001,"burst":1}`, 5, 5, 429, "rate"},
	} {
		s.setPolicy(t, "shop", c.document)
		if got := post(c.length, c.size); got != c.want {
			t.Errorf("%s with %d bytes: status %d, want %d", c.document, c.size, got, c.want)
		}
		recorded(t, s.Relay, c.document, func(e wire.Access) bool { return e.Status == c.want && e.Refused == c.rule })
	}
	eventually(t, "no body is held", func() bool { return s.holding() == 0 })
}

// TestWebhooksInShadowMode checks that results are recorded, and bodies passed on as they
// arrive.
func TestWebhooksInShadowMode(t *testing.T) {
	first := make(chan string)
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 4)
		n, _ := io.ReadFull(r.Body, b)
		first <- string(b[:n])
		if r.URL.RawQuery != "half" {
			io.Copy(io.Discard, r.Body)
		}
	}))
	s.setPolicy(t, "shop", strings.Replace(hookPolicy, "{", `{"shadow":true,`, 1))
	for _, c := range []struct{ path, signed, rule string }{
		{"/hooks/github", hubSignature([]byte("bodybody")), ""},
		{"/hooks/github", hubSignature([]byte("body")), "shadow:webhooks"},
		{"/hooks/github", "", "shadow:webhooks"},
		{"/x/../hooks/github", hubSignature([]byte("bodybody")), "shadow:webhooks_path"},
		{"/", "", "shadow:basic_auth"},
	} {
		body, out := io.Pipe()
		u, _ := url.Parse(s.http)
		u.Opaque = "//" + u.Host + c.path
		req := (&http.Request{Method: http.MethodPost, URL: u, Host: u.Host, Header: http.Header{}, Body: body}).WithContext(t.Context())
		req.Header.Set("X-Hub-Signature-256", c.signed)
		done := make(chan int, 1)
		go func() {
			resp, err := s.visitor.Do(req)
			if err != nil {
				t.Error(err)
				done <- 0
				return
			}
			resp.Body.Close()
			done <- resp.StatusCode
		}()
		io.WriteString(out, "body")
		if got := <-first; got != "body" { // before the rest has come
			t.Errorf("%s: the origin got %q", c.path, got)
		}
		io.WriteString(out, "body")
		out.Close()
		if status := <-done; status != 200 {
			t.Errorf("%s: status %d", c.path, status)
		}
		recorded(t, s.Relay, c.path, func(e wire.Access) bool { return e.Refused == c.rule && e.Path != "" && e.BytesIn == 8 })
	}
}

// TestWebhookPolicyChangeEndsWhatIsOpen uses an answer that does not end.
func TestWebhookPolicyChangeEndsWhatIsOpen(t *testing.T) {
	s := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "x")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	open := func() *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/hooks/github", nil)
		req.Header.Set("X-Hub-Signature-256", hubSignature(nil))
		resp, err := s.visitor.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatal(resp, err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		io.ReadFull(resp.Body, make([]byte, 1))
		return resp
	}
	before := open()
	s.setPolicy(t, "shop", hookPolicy)
	if _, err := before.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("what came before there was a webhook goes on: %v", err)
	}
	signed := open()
	s.setPolicy(t, "shop", strings.Replace(hookPolicy, `"an older secret",`, "", 1))
	select {
	case err := <-ended(signed):
		t.Errorf("it ended while its secret is still right: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	s.setPolicy(t, "shop", strings.Replace(hookPolicy, hookSecret, "another one", 1))
	select {
	case <-ended(signed):
	case <-time.After(patience):
		t.Error("it goes on with a secret that is no more")
	}
}

// ended reports when an answer ends.
func ended(resp *http.Response) <-chan error {
	c := make(chan error, 1)
	go func() {
		_, err := resp.Body.Read(make([]byte, 1))
		c <- err
	}()
	return c
}

// TestWebhooksCloseOtherTypes uses tunnels whose paths the edge does not see.
func TestWebhooksCloseOtherTypes(t *testing.T) {
	r := startRelay(t, testConfig(t.TempDir()))
	target, address := echoSite(t, r)
	s := &site{testRelay: r}
	echoed(t, address).Close()
	s.setPolicy(t, target, `{"webhooks":[{"path":"/hooks","provider":"gitlab","secrets":["long enough"]}]}`)
	c, err := net.Dial("tcp", address)
	if err == nil {
		defer c.Close()
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "x")
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Error("a connection is let in")
		}
	}
	recorded(t, r.Relay, "a connection", func(e wire.Access) bool { return e.Refused == "webhooks" })
}

func TestWebhooksAreExplainedToTheOperator(t *testing.T) {
	s := hookSite(t, hookPolicy)
	for path, c := range map[string]struct {
		signed bool
		rule   string
	}{"": {false, "basic_auth"}, "/hooks/github": {false, "webhooks"}, "hooks/github/x": {true, ""}, "/hooks//github": {true, "webhooks_path"}} {
		e, err := s.operator().Explain(console.Question{Target: "shop", Address: "127.0.0.1", Path: path, Signed: c.signed})
		if err != nil || e.Rule != c.rule {
			t.Errorf("%q: got %+v, %v", path, e, err)
		}
	}
}

// TestWebhookIsTriedAsTheDocumentSays runs the commands of
// docs/relay/webhooks.md that sign a body as GitHub does.
func TestWebhookIsTriedAsTheDocumentSays(t *testing.T) {
	for _, name := range []string{"bash", "openssl", "curl"} {
		require.Tool(t, name)
	}
	s := hookSite(t, strings.Replace(hookPolicy, "an older secret", "a long random text", 1))
	document, err := os.ReadFile("../../docs/relay/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), "```bash\n")
	commands, _, ok := strings.Cut(rest, "```")
	const shown = "https://shop.tunnel.example.com"
	if !ok || strings.Count(commands, shown) != 1 {
		t.Fatalf("the document has %q", commands)
	}
	u, _ := url.Parse(s.https)
	address := fmt.Sprintf("--noproxy '*' -s --cacert %s --resolve %s:127.0.0.1 %s", s.CAFile(), u.Host, s.https)
	commands = strings.Replace(commands, shown, address, 1)
	for script, want := range map[string]string{commands: "origin: /hooks/github", strings.Replace(commands, "a long random text", "another one", 1): "401"} {
		out, err := exec.CommandContext(t.Context(), "bash", "-euc", script).CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: got %s, %v; want %s", script, out, err, want)
		}
	}
}
