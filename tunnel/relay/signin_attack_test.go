package relay

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"adit/internal/freeport"
	"adit/internal/identitytest"
	"adit/tunnel/relay/config"
	"adit/tunnel/wire"
)

// TestSignInsLeadToNoLookalike uses ship with a dotted capital I. To browsers that is a
// different name, which another client may have, but it becomes ship when written in
// lower case. Whoever begins a sign-in under that name could make somebody else finish it
// there, and would get the code.
func TestSignInsLeadToNoLookalike(t *testing.T) {
	const own, lookalike, encoded = "ship", "sh\u0130p", "xn--ship-swc"
	cfg := testConfig(t.TempDir())
	port := freeport.Get(t)
	cfg.EdgeHTTPSListen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	provider := identitytest.StartGitHub(t, fmt.Sprintf("https://sign-in.relay.test:%d/callback", port))
	provider.Be(identitytest.Account{ID: 7, Login: "ann", Emails: []identitytest.Email{{Email: "ann@example.com", Verified: true, Primary: true}}})
	cfg.SignIn = []config.SignIn{{Name: "company", Type: "github", URL: provider.URL, ClientID: identitytest.ClientID, ClientSecretFile: secretFile(t, identitytest.ClientSecret)}}
	r := &site{testRelay: startRelay(t, cfg)}
	connect(t, r.client(t, "owner"), "i1").mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: own}, startOrigin(t, http.HandlerFunc(whoSite)))
	r.setPolicy(t, own, `{"sign_in":{"provider":"company","anyone":true}}`)
	var code string // what comes to the other client's site
	connect(t, r.client(t, "other"), "i2").mustClaim("https", wire.Claim{Type: wire.TypeHTTPS, Domain: encoded}, startOrigin(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		code = r.URL.Query().Get("code")
	})))
	// ask asks the owner's site under a name.
	ask := func(name, target, cookie string) (*http.Response, string) {
		t.Helper()
		conn, err := tls.Dial("tcp", cfg.EdgeHTTPSListen, &tls.Config{RootCAs: r.roots(t), ServerName: own + ".relay.test"})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET https://%s.relay.test:%d%s HTTP/1.1\r\nHost: x\r\nAccept: text/html\r\nCookie: %s\r\nConnection: close\r\n\r\n", name, port, target, cookie)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer, string(body)
	}
	begun, body := ask(lookalike, "/", "")
	if begun.StatusCode == http.StatusBadRequest {
		return
	}
	t.Errorf("the other name: status %d, %s; want %d", begun.StatusCode, body, http.StatusBadRequest)
	to, err := url.Parse(begun.Header.Get("Location"))
	if err != nil || !to.Query().Has("state") {
		t.Fatalf("nobody is sent to sign in: %v, %v", to, err)
	}
	victim := r.browser(t)
	victim.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if req.URL.Hostname() == lookalike+".relay.test" { // browsers write it so
			req.URL.Host = fmt.Sprintf("%s.relay.test:%d", encoded, port)
		}
		return nil
	}
	open(t, victim, http.MethodGet, to.String(), "")
	cookie, _, _ := strings.Cut(begun.Header.Get("Set-Cookie"), ";")
	done, _ := ask(lookalike, "/.adit/sign-in?"+url.Values{"code": {code}, "state": {to.Query().Get("state")}}.Encode(), cookie)
	cookie, _, _ = strings.Cut(done.Header.Get("Set-Cookie"), ";")
	if _, body := ask(own, "/", cookie); strings.Contains(body, "email=ann@example.com") {
		t.Errorf("with a code that somebody else was given: %s", body)
	}
}
