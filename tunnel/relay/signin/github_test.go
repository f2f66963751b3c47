package signin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"adit/internal/identitytest"
	"adit/tunnel/relay/policy"
)

const gitHubCallback = "https://sign-in.relay.test/callback"

var ann = identitytest.Account{
	ID: 583231, Login: "ann-at-home",
	Emails: []identitytest.Email{
		{Email: "typo@exmaple.com"},
		{Email: "Ann@Example.com", Verified: true, Primary: true},
		{Email: "ann@partner.example", Verified: true},
		{Email: "boss@partner.example"},
		{Email: "583231+ann-at-home@users.noreply.github.com", Verified: true},
	},
	Orgs:  []string{"acme", "Chess-Club"},
	Teams: []string{"acme/ops", "acme/all"},
}

// atGitHub sets up sign-in with a stand-in for GitHub, where the visitor is ann.
func atGitHub(t *testing.T) (*identitytest.GitHub, *Visitors, *bytes.Buffer) {
	t.Helper()
	g := identitytest.StartGitHub(t, gitHubCallback)
	g.Be(ann)
	log := new(bytes.Buffer)
	return g, New(Config{
		Key: make([]byte, 32), Host: "sign-in.relay.test", Origin: "https://sign-in.relay.test", Log: slog.New(slog.NewTextHandler(log, nil)),
		Providers: []Provider{{Name: "github", Kind: GitHub, Issuer: g.URL, ClientID: identitytest.ClientID, ClientSecret: identitytest.ClientSecret, Session: time.Hour}},
	}), log
}

// someBrowser holds a browser's cookies for one site.
type someBrowser struct {
	t    *testing.T
	v    *Visitors
	site Site
	has  map[string]*http.Cookie
}

func newBrowser(t *testing.T, v *Visitors, p *policy.SignIn) *someBrowser {
	p.Provider = "github"
	return &someBrowser{t, v, site(p), map[string]*http.Cookie{}}
}

func (b *someBrowser) request(target string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "https://shop.relay.test"+target, nil)
	for _, c := range b.has {
		r.AddCookie(c)
	}
	return r
}

func (b *someBrowser) take(answer *httptest.ResponseRecorder) *url.URL {
	b.t.Helper()
	for _, c := range answer.Result().Cookies() {
		b.has[c.Name] = c
		if len(c.String()) > 4096 {
			b.t.Errorf("a cookie has %d bytes", len(c.String()))
		}
	}
	to, err := url.Parse(answer.Header().Get("Location"))
	if err != nil {
		b.t.Fatal(err)
	}
	return to
}

// begin starts to sign in, and returns the provider's URL that the browser is sent to.
func (b *someBrowser) begin() *url.URL {
	b.t.Helper()
	answer := httptest.NewRecorder()
	b.v.Begin(answer, b.request("/cart"), b.site, "/cart", refuse)
	return b.take(answer)
}

// comeBack returns from the provider, and returns the query for the last step.
func (b *someBrowser) comeBack(to *url.URL) url.Values {
	b.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(to.String())
	if err != nil {
		b.t.Fatal(err)
	}
	resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		b.t.Fatalf("the provider answers %s: %v", resp.Status, err)
	}
	answer := httptest.NewRecorder()
	b.v.Return(answer, httptest.NewRequest(http.MethodGet, back.String(), nil), refuse)
	return b.take(answer).Query()
}

// finish takes the last step, and returns the answer and who the visitor is according to
// it.
func (b *someBrowser) finish(q url.Values) (*httptest.ResponseRecorder, *policy.Identity) {
	b.t.Helper()
	answer := httptest.NewRecorder()
	b.v.Serve(answer, b.request(signInPath+"?"+q.Encode()), b.site, refuse)
	b.take(answer)
	return answer, b.v.Identity(b.request("/cart"), b.site)
}

func (b *someBrowser) signIn() (*httptest.ResponseRecorder, *policy.Identity) {
	b.t.Helper()
	return b.finish(b.comeBack(b.begin()))
}

func TestSignInWithGitHub(t *testing.T) {
	for name, c := range map[string]struct {
		wants  policy.SignIn
		change func(*identitytest.Account)
		want   policy.Identity
		scope  string
		asks   string // of the API
	}{
		"anyone":                   {wants: policy.SignIn{Anyone: true}, want: policy.Identity{Email: "ann@example.com"}},
		"the primary address":      {wants: policy.SignIn{Emails: []string{"ann@example.com"}}, want: policy.Identity{Email: "ann@example.com"}},
		"another that is verified": {wants: policy.SignIn{Emails: []string{"@partner.example"}}, want: policy.Identity{Email: "ann@example.com", Emails: []string{"ann@partner.example"}}},
		"one that is not verified": {wants: policy.SignIn{Emails: []string{"boss@partner.example"}}, want: policy.Identity{Email: "ann@example.com"}},
		"the primary is not either": {wants: policy.SignIn{Emails: []string{"@example.com"}}, change: func(a *identitytest.Account) {
			a.Emails = []identitytest.Email{{Email: "ann@example.com", Primary: true}}
		}},
		"one of another letter": {wants: policy.SignIn{Emails: []string{"@github.example"}}, change: func(a *identitytest.Account) {
			a.Emails = append(a.Emails, identitytest.Email{Email: "ann@g\u0130thub.example", Verified: true})
		}, want: policy.Identity{Email: "ann@example.com"}},
		"no address at all":          {wants: policy.SignIn{Anyone: true}, change: func(a *identitytest.Account) { a.Emails = nil }},
		"an organisation":            {wants: policy.SignIn{Groups: []string{"acme", "other"}}, want: policy.Identity{Email: "ann@example.com", Groups: []string{"acme"}}, scope: " read:org", asks: " /api/v3/user/orgs"},
		"a team":                     {wants: policy.SignIn{Groups: []string{"acme/ops", "other/ops"}}, want: policy.Identity{Email: "ann@example.com", Groups: []string{"acme/ops"}}, scope: " read:org", asks: " /api/v3/user/teams"},
		"both, of which it has none": {wants: policy.SignIn{Groups: []string{"other", "acme/board"}}, want: policy.Identity{Email: "ann@example.com"}, scope: " read:org", asks: " /api/v3/user/orgs /api/v3/user/teams"},
		"the last of many": {
			wants: policy.SignIn{Groups: []string{"org-899"}},
			change: func(a *identitytest.Account) {
				for i := range 900 {
					a.Orgs = append(a.Orgs, fmt.Sprint("org-", i))
				}
			},
			want: policy.Identity{Email: "ann@example.com", Groups: []string{"org-899"}}, scope: " read:org", asks: strings.Repeat(" /api/v3/user/orgs", 10),
		},
		"more than are counted": {
			wants: policy.SignIn{Groups: []string{"org-1899"}},
			change: func(a *identitytest.Account) {
				for i := range 1900 {
					a.Orgs = append(a.Orgs, fmt.Sprint("org-", i))
				}
			},
			want: policy.Identity{Email: "ann@example.com"}, scope: " read:org", asks: strings.Repeat(" /api/v3/user/orgs", 10),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, v, _ := atGitHub(t)
			if c.change != nil {
				a := ann
				c.change(&a)
				g.Be(a)
			}
			b := newBrowser(t, v, &c.wants)
			to := b.begin()
			if q := to.Query(); q.Get("scope") != "user:email"+c.scope || q.Has("nonce") || q.Has("prompt") {
				t.Errorf("it is sent to %s", to)
			}
			back := b.comeBack(to)
			g.Asked()
			answer, who := b.finish(back)
			if who == nil || answer.Header().Get("Location") != "https://shop.relay.test/cart" {
				t.Fatalf("status %d: %s", answer.Code, answer.Body)
			}
			if who.Provider != "github" || who.Subject != "583231" || who.Name != "ann-at-home" || who.Email != c.want.Email || !slices.Equal(who.Emails, c.want.Emails) || !slices.Equal(who.Groups, c.want.Groups) {
				t.Errorf("got %+v, want %+v", who, c.want)
			}
			if want := "/login/oauth/access_token /api/v3/user /api/v3/user/emails" + c.asks; strings.Join(g.Asked(), " ") != want {
				t.Errorf("it asked otherwise than for %s", want)
			}
			if said := v.Status()[0]; said.Kind != GitHub || said.Error != "" || said.Asked.IsZero() {
				t.Errorf("the status says %+v", said)
			}
		})
	}
}

// TestGitHubThatAnswersOtherwise checks that unexpected answers let nobody in, and that
// only the operator is told why.
func TestGitHubThatAnswersOtherwise(t *testing.T) {
	says := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
	}
	asked := false
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer elsewhere.Close()
	const token, user, emails, orgs = "/login/oauth/access_token", "/api/v3/user", "/api/v3/user/emails", "/api/v3/user/orgs"
	for name, c := range map[string]struct {
		path   string
		answer http.HandlerFunc
		want   string // of the log and of the status
	}{
		"a token that is none":       {token, says(200, `{"access_token":"","token_type":"bearer"}`), "swap the code: "},
		"a page instead of a token":  {token, says(404, "<html>"+strings.Repeat("no such page ", 1000)), "swap the code: "},
		"a token of another kind":    {token, says(200, `{"access_token":7}`), "swap the code: "},
		"a token that is no header":  {token, says(200, `{"access_token":"a\nb"}`), "read /user: "},
		"another secret":             {token, says(200, `{"error":"incorrect_client_credentials","error_description":"no"}`), "incorrect_client_credentials"},
		"the secret sent elsewhere":  {token, http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect).ServeHTTP, "swap the code: "},
		"nobody":                     {user, says(200, `{"login":"ann"}`), "names nobody"},
		"nobody, in words":           {user, says(200, `null`), "names nobody"},
		"a name that is an address":  {user, says(200, `{"id":7,"login":"boss@example.com"}`), "names nobody"},
		"a number that is a text":    {user, says(200, `{"id":"7","login":"ann"}`), "read /user: "},
		"a token that is refused":    {user, says(401, `{"message":"Bad credentials"}`), "read /user: it answers 401 Unauthorized"},
		"the token sent elsewhere":   {user, http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP, "read /user: it answers 302 Found"},
		"half an answer":             {user, says(200, `{"id":7,`), "read /user: "},
		"an answer without an end":   {user, says(200, `{"id":7,"login":"`+strings.Repeat("a", 2<<20)), "read /user: the answer has more than 1048576 bytes"},
		"no addresses":               {emails, says(404, `{"message":"Not Found"}`), "read /user/emails: it answers 404 Not Found"},
		"addresses of another kind":  {emails, says(200, `{"email":"ann@example.com"}`), "read /user/emails: "},
		"addresses said to be true":  {emails, says(200, `[{"email":"ann@example.com","verified":"true"}]`), "read /user/emails: "},
		"organisations that are not": {orgs, says(403, `{}`), "read /user/orgs: it answers 403 Forbidden"},
		"headers without an end": {user, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("a", 1<<20))
		}, "read /user: "},
	} {
		t.Run(name, func(t *testing.T) {
			g, v, log := atGitHub(t)
			g.Answer(c.path, c.answer)
			answer, who := newBrowser(t, v, &policy.SignIn{Groups: []string{"acme"}}).signIn()
			if who != nil || answer.Code != http.StatusForbidden || !strings.Contains(answer.Body.String(), "could not verify") {
				t.Errorf("status %d, %+v: %s", answer.Code, who, answer.Body)
			}
			said := v.Status()[0].Error
			if !strings.Contains(said, c.want) || len(said) > 500 || !strings.Contains(log.String(), "a sign-in failed") {
				t.Errorf("the status says %q and the log %s", said, log)
			}
			for _, hidden := range []string{"gho_", "client_secret", "code=", "code_verifier", `a\nb`} {
				if strings.Contains(log.String()+said+answer.Body.String(), hidden) {
					t.Errorf("%s is told: %s", hidden, log)
				}
			}
			// It is well again.
			g.Answer(c.path, nil)
			if _, who := newBrowser(t, v, &policy.SignIn{Groups: []string{"acme"}}).signIn(); who == nil || v.Status()[0].Error != "" {
				t.Errorf("afterwards %+v, and the status says %q", who, v.Status()[0].Error)
			}
		})
	}
	if asked {
		t.Error("it was followed elsewhere")
	}
}

// TestGitHubThatDoesNotAnswer checks that it is waited for only for a limited time, and
// not blamed if a visitor leaves.
func TestGitHubThatDoesNotAnswer(t *testing.T) {
	g, v, _ := atGitHub(t)
	left, leave := context.WithCancel(t.Context())
	g.Answer("/api/v3/user", func(_ http.ResponseWriter, r *http.Request) {
		leave()
		<-r.Context().Done()
	})
	b := newBrowser(t, v, &policy.SignIn{Anyone: true})
	answer := httptest.NewRecorder()
	b.v.Serve(answer, b.request(signInPath+"?"+b.comeBack(b.begin()).Encode()).WithContext(left), b.site, refuse)
	if said := v.Status()[0]; answer.Code != http.StatusForbidden || said.Error != "" {
		t.Errorf("a visitor who leaves: status %d, and the provider's %+v", answer.Code, said)
	}
	v.providers["github"].source.(*gitHub).client.Timeout = 50 * time.Millisecond
	if answer, who := b.signIn(); who != nil || answer.Code != http.StatusForbidden || v.Status()[0].Error == "" {
		t.Errorf("status %d, %+v, and the provider's %+v", answer.Code, who, v.Status()[0])
	}
}

// TestGitHubSignInIsOfOneBrowser checks this even if the server does not support PKCE.
func TestGitHubSignInIsOfOneBrowser(t *testing.T) {
	g, v, _ := atGitHub(t)
	attacker, victim := newBrowser(t, v, &policy.SignIn{Anyone: true}), newBrowser(t, v, &policy.SignIn{Anyone: true})
	last := attacker.comeBack(attacker.begin())
	own := victim.begin().Query().Get("state")
	g.Asked()
	if answer, who := victim.finish(last); who != nil || answer.Code != http.StatusFound || !strings.HasPrefix(answer.Header().Get("Location"), g.URL+"/login/oauth/authorize?") || len(g.Asked()) != 0 {
		t.Errorf("the last step of another, where one's own is under way: status %d, %+v", answer.Code, who)
	}
	if answer, who := newBrowser(t, v, &policy.SignIn{Anyone: true}).finish(last); who != nil || answer.Code != http.StatusBadRequest || len(g.Asked()) != 0 {
		t.Errorf("the last step of another: status %d, %+v", answer.Code, who)
	}
	if answer, who := victim.finish(url.Values{"code": last["code"], "state": {own}}); who != nil || answer.Code != http.StatusBadRequest || len(g.Asked()) != 0 {
		t.Errorf("the code of another: status %d, %+v", answer.Code, who)
	}
	back := httptest.NewRecorder()
	v.Return(back, httptest.NewRequest(http.MethodGet, gitHubCallback+"?code=guess&state="+own, nil), refuse)
	if answer, who := victim.finish(victim.take(back).Query()); who != nil || answer.Code != http.StatusForbidden {
		t.Errorf("no code of the provider's: status %d, %+v", answer.Code, who)
	}
	if said := v.Status()[0].Error; said != "" {
		t.Errorf("a wrong code is said to be the provider's fault: %s", said)
	}
	if answer, who := attacker.finish(last); who == nil || answer.Code != http.StatusSeeOther {
		t.Errorf("its own: status %d, %s", answer.Code, answer.Body)
	}
	for issuer, want := range map[string]int{g.URL: 303, g.URL + "/login/oauth": 303, g.URL + ".example.com": 400, "https://github.example": 400, "": 400} {
		b := newBrowser(t, v, &policy.SignIn{Anyone: true})
		q := b.comeBack(b.begin())
		q.Set("iss", issuer)
		if answer, _ := b.finish(q); answer.Code != want {
			t.Errorf("issuer %q: status %d", issuer, answer.Code)
		}
	}
}

// TestCodesAreOfOneSignIn covers another client of the relay with a site at which
// visitors sign in. It may stop asking for that, or lead its name elsewhere, before the
// last step arrives there with its code. A server without PKCE accepts that code for
// another sign-in.
func TestCodesAreOfOneSignIn(t *testing.T) {
	g, v, _ := atGitHub(t)
	g.ForgetPKCE()
	victim := newBrowser(t, v, &policy.SignIn{Anyone: true})
	victim.site.Host, victim.site.Name = "evil.relay.test", "evil.relay.test"
	brought := victim.comeBack(victim.begin())
	attacker := newBrowser(t, v, &policy.SignIn{Anyone: true})
	own := attacker.begin().Query().Get("state")
	if answer, who := attacker.finish(url.Values{"code": brought["code"], "state": {own}}); who != nil {
		t.Errorf("with a code from another site: status %d, %+v", answer.Code, who)
	}
	if answer, who := victim.finish(brought); who == nil {
		t.Errorf("its own: status %d, %s", answer.Code, answer.Body)
	}
}

// TestGitHubCookiesFit puts as much as possible into a cookie.
func TestGitHubCookiesFit(t *testing.T) {
	g, v, _ := atGitHub(t)
	a := identitytest.Account{ID: 1<<63 - 1, Login: strings.Repeat("a", 64)}
	wants := &policy.SignIn{}
	for i := range 400 {
		email := fmt.Sprintf("%s%03d@%s.example", strings.Repeat("e", 60), i, strings.Repeat("d", 240))
		a.Emails = append(a.Emails, identitytest.Email{Email: email, Verified: true, Primary: i == 0})
		a.Teams = append(a.Teams, fmt.Sprintf("an-organisation/team-%d", i))
	}
	for i := range a.Emails {
		wants.Emails, wants.Groups = append(wants.Emails, a.Emails[i].Email), append(wants.Groups, a.Teams[i])
	}
	g.Be(a)
	if answer, who := newBrowser(t, v, wants).signIn(); who == nil || len(who.Emails) == 0 || len(who.Groups) < 10 {
		t.Errorf("status %d, %+v", answer.Code, who)
	}
}

func TestWhereTheAPIOfGitHubIs(t *testing.T) {
	for site, want := range map[string]string{
		GitHubURL: "https://api.github.com", "https://acme.ghe.com": "https://api.acme.ghe.com",
		"https://git.example.com": "https://git.example.com/api/v3", "https://notgithub.com": "https://notgithub.com/api/v3",
	} {
		if got := gitHubAPI(site); got != want {
			t.Errorf("%s: got %s, want %s", site, got, want)
		}
	}
}
