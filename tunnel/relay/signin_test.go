package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"adit/internal/freeport"
	"adit/internal/identitytest"
	"adit/internal/require"
	"adit/tunnel/relay/config"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/wire"
)

var identityProgram = sync.OnceValues(func() (string, error) { return buildTool(identitytest.Program) })

// startProvider runs an identity provider and returns its issuer.
func startProvider(tb testing.TB, callback string) string {
	tb.Helper()
	if testing.Short() {
		tb.Skip("an identity provider is built and run")
	}
	require.Tool(tb, "go")
	program, err := identityProgram()
	if err != nil {
		require.Missing(tb, "the identity provider cannot be built: %v", err)
	}
	return identitytest.Start(tb, program, callback)
}

// signInConfig returns the configuration of a relay whose visitors sign in with a running
// provider.
func signInConfig(tb testing.TB) config.Config {
	tb.Helper()
	cfg := testConfig(tb.TempDir())
	port := freeport.Get(tb)
	cfg.EdgeHTTPSListen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	cfg.SignIn = signInWith(tb, port)
	return cfg
}

// signInWith runs a provider for relays whose https edge is at the given port.
func signInWith(tb testing.TB, port int) []config.SignIn {
	tb.Helper()
	issuer := startProvider(tb, fmt.Sprintf("https://sign-in.relay.test:%d/callback", port))
	return []config.SignIn{{Name: "company", Issuer: issuer, ClientID: identitytest.ClientID, ClientSecretFile: secretFile(tb, identitytest.ClientSecret)}}
}

func secretFile(tb testing.TB, secret string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// browser returns a visitor with cookies that follows redirects.
func (r *testRelay) browser(tb testing.TB) *http.Client {
	tb.Helper()
	c := r.visitor(tb)
	c.Jar, _ = cookiejar.New(nil) // it has no errors without options
	c.CheckRedirect = func(_ *http.Request, via []*http.Request) error {
		if len(via) > 20 {
			return errors.New("too many redirects")
		}
		return nil
	}
	return c
}

// open requests a page as a browser does, and returns the final answer.
func open(tb testing.TB, c *http.Client, method, address, form string) (*http.Response, string) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, address, strings.NewReader(form))
	if err != nil {
		tb.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,*/*;q=0.8")
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp, string(body)
}

var hiddenID = regexp.MustCompile(`name="id" value="([^"]+)"`)

// signIn opens a page, signs in at the provider that the visitor is sent to, and returns
// the final answer.
func signIn(tb testing.TB, c *http.Client, page, user string) (*http.Response, string) {
	tb.Helper()
	resp, body := open(tb, c, http.MethodGet, page, "")
	id := hiddenID.FindStringSubmatch(body)
	if resp.Request.URL.Hostname() != "localhost" || id == nil {
		tb.Fatalf("%s led to %s: status %d, %s", page, resp.Request.URL, resp.StatusCode, body)
	}
	form := url.Values{"id": {id[1]}, "username": {user}, "password": {identitytest.Password}}
	return open(tb, c, http.MethodPost, resp.Request.URL.ResolveReference(&url.URL{Path: "/login/username"}).String(), form.Encode())
}

func whoSite(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s user=%s email=%s groups=%s cookie=%q", r.URL, r.Header.Get("X-Forwarded-User"), r.Header.Get("X-Forwarded-Email"), r.Header.Get("X-Forwarded-Groups"), r.Header.Get("Cookie"))
}

const onlyTheFirst = `{"sign_in":{"provider":"company","emails":["Test-User@zitadel.ch"]}}`

// TestVisitorsSignIn covers the whole process, with a provider written by others.
func TestVisitorsSignIn(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(whoSite))
	s.setPolicy(t, "shop", onlyTheFirst)
	page := s.https + "/cart?a=b&c=%2F"

	// A program is told, and not sent anywhere.
	if status, body := get(t, s.visitor, page); status != 401 || !strings.Contains(body, "Sign in first") {
		t.Errorf("without a browser: status %d, %s", status, body)
	}
	c := s.browser(t)
	resp, body := signIn(t, c, page, "test-user@localhost")
	if want := `/cart?a=b&c=%2F user=id1 email=test-user@zitadel.ch groups= cookie=""`; resp.StatusCode != 200 || body != want || resp.Request.URL.String() != page {
		t.Fatalf("signed in: status %d at %s: %s", resp.StatusCode, resp.Request.URL, body)
	}
	recorded(t, s.Relay, "signed in", func(e wire.Access) bool {
		return e.User == "test-user@zitadel.ch" && e.Status == 200 && e.Path == "/cart"
	})
	if resp, _ := open(t, c, http.MethodPost, page, "a=b"); resp.StatusCode != 200 {
		t.Errorf("a form: status %d", resp.StatusCode)
	}
	// Neither the cookie nor what says who it is can be the visitor's own.
	u, _ := url.Parse(s.https)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	req.Header.Set("X-Forwarded-Email", "boss@zitadel.ch")
	req.AddCookie(&http.Cookie{Name: "basket", Value: "7"})
	if resp, err := c.Do(req); err != nil {
		t.Error(err)
	} else if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), `email=test-user@zitadel.ch groups= cookie="basket=7"`) {
		t.Errorf("with its own headers: %s", body)
	}
	// Every protocol of the edge holds it; the plain listener has its own cookie.
	if status, _ := get(t, s.visitor3(t), page); status != 401 {
		t.Errorf("by HTTP/3: status %d", status)
	}
	if status, _ := get(t, s.visitor, s.http+"/"); status != 401 {
		t.Errorf("by plain HTTP: status %d", status)
	}
	// Somebody else is known, and not let in; then somebody may be somebody else.
	other := s.browser(t)
	resp, body = signIn(t, other, page, "test-user2")
	if resp.StatusCode != 403 || !strings.Contains(body, "test-user2@zitadel.ch") || !strings.Contains(body, `href="/.adit/sign-in"`) {
		t.Fatalf("somebody else: status %d, %s", resp.StatusCode, body)
	}
	recorded(t, s.Relay, "somebody else", func(e wire.Access) bool { return e.Refused == "sign_in_who" && e.Status == 403 })
	resp, body = signIn(t, other, s.https+"/.adit/sign-in", "test-user@localhost")
	if resp.StatusCode != 200 || !strings.HasPrefix(body, "/ user=id1") {
		t.Errorf("as the first: status %d, %s", resp.StatusCode, body)
	}
	// Signing out takes a button, and is for this browser alone.
	if resp, body := open(t, c, http.MethodGet, s.https+"/.adit/sign-out", ""); resp.StatusCode != 200 || !strings.Contains(body, `method="post"`) || len(c.Jar.Cookies(u)) == 0 {
		t.Errorf("the page to sign out: status %d, %s", resp.StatusCode, body)
	}
	if resp, body := open(t, c, http.MethodPost, s.https+"/.adit/sign-out", ""); resp.StatusCode != 200 || !strings.Contains(body, "signed out") || len(c.Jar.Cookies(u)) != 0 {
		t.Errorf("signing out: status %d, cookies %v, %s", resp.StatusCode, c.Jar.Cookies(u), body)
	}
	if resp, _ := open(t, other, http.MethodGet, page, ""); resp.StatusCode != 200 {
		t.Errorf("the other browser: status %d", resp.StatusCode)
	}
}

// TestSignInIsOfOneBrowserAndOneSite tries what somebody who must not be let in could
// have.
func TestSignInIsOfOneBrowserAndOneSite(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(whoSite))
	s.agent.mustClaim("other", wire.Claim{Type: wire.TypeHTTPS, Domain: "other"}, startOrigin(t, http.HandlerFunc(whoSite)))
	s.setPolicy(t, "shop", `{"sign_in":{"provider":"company","anyone":true}}`)
	s.setPolicy(t, "other", `{"sign_in":{"provider":"company","anyone":true}}`)
	elsewhere := strings.Replace(s.https, "shop.", "other.", 1)

	// The attacker signs in up to the last step, and has a victim take that.
	attacker, victim := s.browser(t), s.browser(t)
	var last *url.URL
	attacker.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/.adit/sign-in" {
			last = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}
	signIn(t, attacker, s.https+"/", "test-user2")
	if last == nil || !last.Query().Has("code") {
		t.Fatalf("the last step is %v", last)
	}
	if resp, body := open(t, victim, http.MethodGet, last.String(), ""); resp.StatusCode != 400 {
		t.Errorf("a victim without a sign-in of its own: status %d, %s", resp.StatusCode, body)
	}
	open(t, victim, http.MethodGet, s.https+"/", "") // it begins one
	if resp, body := open(t, victim, http.MethodGet, last.String(), ""); resp.Request.URL.Hostname() != "localhost" || !hiddenID.MatchString(body) {
		t.Errorf("a victim that signs in itself, and is to do so: status %d at %s: %s", resp.StatusCode, resp.Request.URL, body)
	}
	if resp, body := open(t, victim, http.MethodGet, s.https+"/", ""); resp.Request.URL.Hostname() != "localhost" {
		t.Errorf("a victim that took the attacker's last step is signed in: status %d, %s", resp.StatusCode, body)
	}
	// Nor with the victim's own state, which the code was not given for.
	var own *url.URL
	follow := victim.CheckRedirect
	victim.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		own = r.URL
		return http.ErrUseLastResponse
	}
	open(t, victim, http.MethodGet, s.https+"/", "")
	victim.CheckRedirect = follow
	mixed := last.Query()
	mixed.Set("state", own.Query().Get("state"))
	if resp, body := open(t, victim, http.MethodGet, s.https+last.Path+"?"+mixed.Encode(), ""); resp.StatusCode != 400 || !strings.Contains(body, "out of date") {
		t.Errorf("the attacker's code with the victim's state: status %d, %s", resp.StatusCode, body)
	}
	resp, _ := signIn(t, victim, s.https+"/", "test-user@localhost")
	if resp.StatusCode != 200 {
		t.Fatalf("the victim: status %d", resp.StatusCode)
	}

	// The origin of one site has its visitors' cookies only if it takes them; they
	// are of no use at another.
	u, _ := url.Parse(s.https)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, elsewhere, nil)
	for _, cookie := range victim.Jar.Cookies(u) {
		req.AddCookie(cookie)
	}
	if resp, err := s.visitor.Do(req); err != nil || resp.StatusCode != 401 {
		t.Errorf("a cookie of another site: %v, %v", resp, err)
	}
	// Nobody can be sent to a site that did not send it.
	for query, want := range map[string]int{"?code=a&state=b": 400, "?state=" + last.Query().Get("state") + "&error=access_denied": 303, "": 400} {
		if resp, err := s.visitor.Get(strings.Replace(s.https, "shop.", "sign-in.", 1) + "/callback" + query); err != nil || resp.StatusCode != want {
			t.Errorf("callback%s: %v, %v; want %d", query, resp, err, want)
		}
	}
	if resp, body := open(t, attacker, http.MethodGet, last.Scheme+"://"+last.Host+last.Path+"?state="+last.Query().Get("state")+"&error=access_denied", ""); resp.StatusCode != 403 || !strings.Contains(body, "access_denied") {
		t.Errorf("refused by the provider: status %d, %s", resp.StatusCode, body)
	}
	if resp, body := open(t, victim, http.MethodGet, s.https+"/.adit/anything", ""); resp.StatusCode != 404 || strings.Contains(body, "user=") {
		t.Errorf("another path of the relay's: status %d, %s", resp.StatusCode, body)
	}
}

// TestWhatIsOpenEndsWithTheSignIn checks that open connections follow the policy, and
// that the number of attempts with codes is limited.
func TestWhatIsOpenEndsWithTheSignIn(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			whoSite(w, r)
			return
		}
		c, err := websocket.Accept(w, r, nil)
		if err == nil {
			defer c.CloseNow()
			c.Read(r.Context())
		}
	}))
	s.setPolicy(t, "shop", onlyTheFirst)
	c := s.browser(t)
	if resp, _ := signIn(t, c, s.https+"/", "test-user@localhost"); resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, s.https, &websocket.DialOptions{HTTPClient: c})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	s.setPolicy(t, "shop", `{"sign_in":{"provider":"company","emails":["@example.com"]}}`)
	if _, _, err := conn.Read(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("a connection of somebody who is not let in any more: %v", err)
	}
	s.setPolicy(t, "shop", onlyTheFirst)
	if resp, body := open(t, c, http.MethodGet, s.https+"/", ""); resp.StatusCode != 200 {
		t.Errorf("let in again: status %d, %s", resp.StatusCode, body)
	}

	// Codes that are none are not passed on to the provider without end.
	guesser := s.browser(t)
	var begun *url.URL
	guesser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		begun = r.URL
		return http.ErrUseLastResponse
	}
	open(t, guesser, http.MethodGet, s.https+"/", "")
	guesser.CheckRedirect = nil
	callback := strings.Replace(s.https, "shop.", "sign-in.", 1) + "/callback"
	for i := range 11 {
		want := 403
		if i == 10 {
			want = 429
		}
		if resp, body := open(t, guesser, http.MethodGet, callback+"?code=guess&state="+begun.Query().Get("state"), ""); resp.StatusCode != want {
			t.Errorf("guess %d: status %d, %s; want %d", i, resp.StatusCode, body, want)
		}
	}
}

func TestSignInBesidePasswords(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(whoSite))
	s.setPolicy(t, "shop", `{"sign_in":{"provider":"company","anyone":true},"basic_auth":[{"name":"robot","password":"secret"}]}`)
	for password, want := range map[string]int{"secret": 200, "guess": 401} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https, nil)
		req.SetBasicAuth("robot", password)
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != want || want == 200 && !strings.Contains(string(body), "user=robot email= ") {
			t.Errorf("%s: status %d, %s; want %d", password, resp.StatusCode, body, want)
		}
	}
	if resp, _ := signIn(t, s.browser(t), s.https+"/", "test-user2"); resp.StatusCode != 200 {
		t.Errorf("signed in: status %d", resp.StatusCode)
	}
}

// TestWhoMaySignInIsAsked sends requests without saying who makes them: one from a
// program, which sends its password when asked for it, and one from a page's script, for
// which a browser would show its user a dialog.
func TestWhoMaySignInIsAsked(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(whoSite))
	const signIn, users = `"sign_in":{"provider":"company","anyone":true}`, `"basic_auth":[{"name":"robot","password":"secret"}]`
	for _, c := range []struct{ policy, header, want string }{
		{`{` + signIn + `,` + users + `}`, "", "Basic "},
		{`{` + signIn + `,` + users + `}`, "Sec-Fetch-Mode", "Sign-In"},
		{`{` + signIn + `,` + users + `}`, "Referer", "Sign-In"},
		{`{` + signIn + `,` + users + `}`, "Origin", "Sign-In"},
		{`{` + signIn + `}`, "", "Sign-In"},
	} {
		s.setPolicy(t, "shop", c.policy)
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.https, nil)
		if c.header != "" {
			req.Header.Set(c.header, "cors")
		}
		resp, err := s.visitor.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Values("WWW-Authenticate"); resp.StatusCode != 401 || len(got) != 1 || !strings.HasPrefix(got[0], c.want) {
			t.Errorf("%s with %q: status %d, asked for %q; want 401 and %q", c.policy, c.header, resp.StatusCode, got, c.want)
		}
	}
}

// TestSignInBehindALoadBalancer uses visitors whose https ends in front of the relay.
func TestSignInBehindALoadBalancer(t *testing.T) {
	cfg := signInConfig(t)
	cfg.TrustedProxies = []string{"127.0.0.1"}
	s := startSite(t, cfg, http.HandlerFunc(whoSite))
	s.setPolicy(t, "shop", onlyTheFirst)
	for proto, cookie := range map[string]string{"https": "__Host-adit-sign-in=", "http": "adit-sign-in=", "gopher": "adit-sign-in="} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/", nil)
		req.Header.Set("Accept", "text/html")
		req.Header.Set("X-Forwarded-Proto", proto)
		resp, err := s.visitor.Do(req)
		if err != nil || resp.StatusCode != 302 || !strings.HasPrefix(resp.Header.Get("Set-Cookie"), cookie) {
			t.Errorf("by %s: %v, %v", proto, resp, err)
		}
	}
	// What the load balancer says of who it is does not count where the relay asks.
	s.setPolicy(t, "shop", `{"basic_auth":[{"name":"robot","password":"secret"}]}`)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.http+"/", nil)
	req.SetBasicAuth("robot", "secret")
	req.Header.Set("X-Forwarded-Email", "boss@example.com")
	resp, err := s.visitor.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(resp.Body); !strings.Contains(string(body), "user=robot email= ") {
		t.Errorf("got %s", body)
	}
}

// TestPolicyOfAnUnknownProvider checks that such a policy is refused when it is set. An
// existing one whose provider is removed lets nobody in.
func TestPolicyOfAnUnknownProvider(t *testing.T) {
	cfg := testConfig(t.TempDir())
	down := freeport.Loopback(t)
	cfg.SignIn = []config.SignIn{{Name: "company", Issuer: "http://" + down, ClientID: "web"}}
	r := startRelay(t, cfg)
	o := r.operator()
	if _, err := o.SetPolicy(t.Context(), "shop", []byte(`{"sign_in":{"provider":"other","anyone":true}}`), nil); err == nil || !strings.Contains(err.Error(), "it has company") {
		t.Errorf("an unknown provider: %v", err)
	}
	s := startSiteOn(t, r, http.HandlerFunc(whoSite))
	s.setPolicy(t, "shop", `{"sign_in":{"provider":"company","anyone":true}}`)
	if resp, body := open(t, s.browser(t), http.MethodGet, s.https+"/", ""); resp.StatusCode != 503 || !strings.Contains(body, "does not answer") {
		t.Errorf("a provider that is away: status %d, %s", resp.StatusCode, body)
	}
	if shown, err := r.operator().Settings(t.Context()); err != nil || len(shown.SignIn.Providers) != 1 || !strings.Contains(shown.SignIn.Providers[0].Error, "refused") {
		t.Errorf("the settings say %+v, %v", shown.SignIn, err)
	}
	if _, err := s.agent.claim("mine", wire.Claim{Type: wire.TypeHTTPS, Domain: "sign-in"}, ""); err == nil || !strings.Contains(err.Error(), "relay's own name") {
		t.Errorf("a client claims the relay's name: %v", err)
	}

	without := startSite(t, testConfig(t.TempDir()), http.HandlerFunc(whoSite))
	if err := without.store.Policies.Set(t.Context(), claims.TargetDomain("shop.relay.test"), []byte(`{"sign_in":{"provider":"company","anyone":true}}`)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "nobody is let in without the provider", func() bool {
		resp, body := open(t, without.browser(t), http.MethodGet, without.https+"/", "")
		return resp.StatusCode == 401 && !strings.Contains(body, "user=")
	})
}

// TestSignInKeyStays checks that those who are signed in stay signed in when a relay
// restarts.
func TestSignInKeyStays(t *testing.T) {
	key := func(r *testRelay) string {
		k, err := r.store.Settings.Get(t.Context(), "sign_in_key")
		if err != nil {
			t.Fatal(err)
		}
		return string(k)
	}
	cfg := testConfig(t.TempDir())
	cfg.SignIn = []config.SignIn{{Name: "company", Issuer: "https://login.example.com", ClientID: "web"}}
	r := startRelay(t, cfg)
	first := key(r)
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if again := key(startRelay(t, cfg)); again != first || len(first) != 32 {
		t.Errorf("the key is %d bytes, and another one after a start", len(again))
	}
}

// TestVisitorsSignInWithGitHub covers the whole process, with a stand-in for GitHub.
func TestVisitorsSignInWithGitHub(t *testing.T) {
	cfg := testConfig(t.TempDir())
	port := freeport.Get(t)
	cfg.EdgeHTTPSListen = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	g := identitytest.StartGitHub(t, fmt.Sprintf("https://sign-in.relay.test:%d/callback", port))
	g.Be(identitytest.Account{
		ID: 583231, Login: "ann-at-home", Teams: []string{"acme/ops"},
		Emails: []identitytest.Email{{Email: "ann@home.example", Verified: true, Primary: true}, {Email: "ann@example.com", Verified: true}},
	})
	cfg.SignIn = []config.SignIn{{Name: "github", Type: "github", URL: g.URL, ClientID: identitytest.ClientID, ClientSecretFile: secretFile(t, identitytest.ClientSecret)}}
	s := startSite(t, cfg, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		whoSite(w, r)
		fmt.Fprintf(w, " name=%s", r.Header.Get("X-Forwarded-Preferred-Username"))
	}))
	s.setPolicy(t, "shop", `{"sign_in":{"provider":"github","emails":["@example.com"],"groups":["acme/ops"]}}`)
	b := s.browser(t)
	page := s.https + "/cart?a=b"
	resp, body := open(t, b, http.MethodGet, page, "")
	if want := `/cart?a=b user=583231 email=ann@home.example groups=acme/ops cookie="" name=ann-at-home`; resp.StatusCode != 200 || body != want || resp.Request.URL.String() != page {
		t.Fatalf("signed in: status %d at %s: %s", resp.StatusCode, resp.Request.URL, body)
	}
	recorded(t, s.Relay, "signed in", func(e wire.Access) bool { return e.User == "ann@home.example" && e.Status == 200 })
	// She is let in by each of the two alone, and by what she has not she is not.
	for rules, want := range map[string]int{`"emails":["ann@example.com"]`: 200, `"groups":["acme/ops"]`: 200, `"emails":["@elsewhere.example"]`: 403, `"groups":["acme"]`: 403} {
		s.setPolicy(t, "shop", `{"sign_in":{"provider":"github",`+rules+`}}`)
		if resp, body := open(t, b, http.MethodGet, page, ""); resp.StatusCode != want {
			t.Errorf("%s: status %d, %s; want %d", rules, resp.StatusCode, body, want)
		}
	}
	settings, err := s.operator().Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if shown := settings.SignIn.Providers; len(shown) != 1 || shown[0].Type != "github" || shown[0].Issuer != g.URL || shown[0].Error != "" {
		t.Errorf("the settings say %+v", shown)
	}
	// The name cannot be of her own making.
	s.setPolicy(t, "shop", `{"sign_in":{"provider":"github","anyone":true}}`)
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	req.Header.Set("X-Forwarded-Preferred-Username", "boss")
	if resp, err := b.Do(req); err != nil {
		t.Error(err)
	} else if body, _ := io.ReadAll(resp.Body); !strings.HasSuffix(string(body), " name=ann-at-home") {
		t.Errorf("with its own header: %s", body)
	}
}
