package signin

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"adit/tunnel/relay/policy"
)

// fakeProvider is an identity provider that says whatever a test wants.
type fakeProvider struct {
	*httptest.Server
	key *ecdsa.PrivateKey

	mu       sync.Mutex
	nonce    string         // of the last that was sent to it
	claims   map[string]any // of the id_token, beside those that it must have
	userInfo map[string]any // nil: it has no such endpoint
	issuer   string         // that it calls itself; empty: its URL
	down     bool
	asked    int // for its configuration
	swapped  url.Values
}

func newFakeProvider(tb testing.TB) *fakeProvider {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	f := &fakeProvider{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", f.configuration)
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("/token", f.token)
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(f.userInfo)
	})
	f.Server = httptest.NewServer(mux)
	tb.Cleanup(f.Close)
	return f
}

func (f *fakeProvider) configuration(w http.ResponseWriter, _ *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.down {
		http.Error(w, strings.Repeat("away ", 1000), http.StatusBadGateway)
		return
	}
	said := map[string]any{
		"issuer": f.URL, "authorization_endpoint": f.URL + "/authorize", "token_endpoint": f.URL + "/token", "jwks_uri": f.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256"},
	}
	if f.issuer != "" {
		said["issuer"] = f.issuer
	}
	if f.userInfo != nil {
		said["userinfo_endpoint"] = f.URL + "/userinfo"
	}
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(said)
}

func (f *fakeProvider) token(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.ParseForm()
	f.swapped = r.PostForm
	now := time.Now().Unix()
	claims := map[string]any{"iss": f.URL, "aud": "web", "sub": "7", "nonce": f.nonce, "iat": now, "exp": now + 60}
	maps.Copy(claims, f.claims)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: f.key, KeyID: "1"}}, nil)
	if err != nil {
		panic(err)
	}
	text, _ := json.Marshal(claims)
	signed, err := signer.Sign(text)
	if err != nil {
		panic(err)
	}
	token, _ := signed.CompactSerialize()
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": token})
}

// visitors returns Visitors that sign in with the provider.
func (f *fakeProvider) visitors(change func(*Provider)) *Visitors {
	p := Provider{Name: "company", Issuer: f.URL, ClientID: "web", ClientSecret: "secret", Session: time.Hour}
	if change != nil {
		change(&p)
	}
	return New(Config{
		Key: make([]byte, 32), Host: "sign-in.relay.test", Origin: "https://sign-in.relay.test", Providers: []Provider{p}, Log: slog.New(slog.DiscardHandler),
	})
}

func site(s *policy.SignIn) Site {
	return Site{Scheme: "https", Host: "shop.relay.test", Name: "shop.relay.test", SignIn: s, Try: func() (func(), bool) { return func() {}, true }}
}

func refuse(w http.ResponseWriter, _ *http.Request, status int, _, text string) {
	http.Error(w, text, status)
}

// signIn acts as a browser that comes from the provider with a code. It returns the last
// answer and who the visitor is according to it.
func (f *fakeProvider) signIn(tb testing.TB, v *Visitors, s Site) (*httptest.ResponseRecorder, *policy.Identity) {
	tb.Helper()
	return f.signInWith(tb, v, s, "&iss="+url.QueryEscape(f.URL))
}

// signInWith is signIn with additional parameters in the query of the last step.
func (f *fakeProvider) signInWith(tb testing.TB, v *Visitors, s Site, more string) (*httptest.ResponseRecorder, *policy.Identity) {
	tb.Helper()
	begun := httptest.NewRecorder()
	v.Begin(begun, httptest.NewRequest(http.MethodGet, "https://shop.relay.test/cart", nil), s, "/cart", refuse)
	at, err := url.Parse(begun.Header().Get("Location"))
	if begun.Code != http.StatusFound || err != nil {
		tb.Fatalf("it began with status %d: %s", begun.Code, begun.Body)
	}
	f.mu.Lock()
	f.nonce = at.Query().Get("nonce")
	f.mu.Unlock()
	back := httptest.NewRecorder()
	v.Return(back, httptest.NewRequest(http.MethodGet, "https://sign-in.relay.test"+returnPath+"?code=c&state="+at.Query().Get("state")+more, nil), refuse)
	r := httptest.NewRequest(http.MethodGet, back.Header().Get("Location"), nil)
	for _, c := range begun.Result().Cookies() {
		r.AddCookie(c)
	}
	done := httptest.NewRecorder()
	v.Serve(done, r, s, refuse)
	next := httptest.NewRequest(http.MethodGet, "https://shop.relay.test/cart", nil)
	for _, c := range done.Result().Cookies() {
		next.AddCookie(c)
	}
	return done, v.Identity(next, s)
}

func TestClaims(t *testing.T) {
	for name, c := range map[string]struct {
		claims, userInfo map[string]any
		change           func(*Provider)
		want             policy.Identity
	}{
		"verified":               {map[string]any{"email": "Ann@Example.com", "email_verified": true}, nil, nil, policy.Identity{Email: "ann@example.com"}},
		"of another letter":      {map[string]any{"email": "Ann@g\u0130thub.example", "email_verified": true}, nil, nil, policy.Identity{Email: "ann@g\u0130thub.example"}},
		"verified as a text":     {map[string]any{"email": "ann@example.com", "email_verified": "true"}, nil, nil, policy.Identity{Email: "ann@example.com"}},
		"not verified":           {map[string]any{"email": "ann@example.com", "email_verified": false}, nil, nil, policy.Identity{}},
		"nothing said of it":     {map[string]any{"email": "ann@example.com"}, nil, nil, policy.Identity{}},
		"unverified ones count":  {map[string]any{"email": "ann@example.com"}, nil, func(p *Provider) { p.UnverifiedEmails = true }, policy.Identity{Email: "ann@example.com"}},
		"groups that are wanted": {map[string]any{"groups": []string{"staff", "chess", "admins"}}, nil, nil, policy.Identity{Groups: []string{"staff", "admins"}}},
		"one group as a text":    {map[string]any{"groups": "staff"}, nil, nil, policy.Identity{Groups: []string{"staff"}}},
		"groups of another kind": {map[string]any{"groups": []any{1, map[string]any{}}}, nil, nil, policy.Identity{}},
		"groups by another name": {map[string]any{"roles": []string{"staff"}}, nil, func(p *Provider) { p.GroupsClaim = "roles" }, policy.Identity{Groups: []string{"staff"}}},
		"asked for": {
			nil,
			map[string]any{"sub": "7", "email": "ann@example.com", "email_verified": true, "groups": []string{"staff"}},
			nil,
			policy.Identity{Email: "ann@example.com", Groups: []string{"staff"}},
		},
		"verified elsewhere": { // of another address, perhaps
			map[string]any{"email": "ann@example.com"}, map[string]any{"sub": "7", "email": "x@example.com", "email_verified": true}, nil, policy.Identity{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeProvider(t)
			f.claims, f.userInfo = c.claims, c.userInfo
			answer, who := f.signIn(t, f.visitors(c.change), site(&policy.SignIn{Provider: "company", Groups: []string{"admins", "staff"}}))
			if who == nil || answer.Code != http.StatusSeeOther || answer.Header().Get("Location") != "https://shop.relay.test/cart" {
				t.Fatalf("status %d: %s", answer.Code, answer.Body)
			}
			if who.Subject != "7" || who.Provider != "company" || who.Email != c.want.Email || !slices.Equal(who.Groups, c.want.Groups) {
				t.Errorf("got %+v, want %+v", who, c.want)
			}
			if left := time.Until(who.Until); left < 59*time.Minute || left > time.Hour {
				t.Errorf("it lasts %v", left)
			}
			for _, cookie := range answer.Result().Cookies() {
				if !strings.HasPrefix(cookie.Name, "__Host-") || !cookie.Secure || !cookie.HttpOnly || cookie.SameSite != http.SameSiteLaxMode || cookie.Path != "/" {
					t.Errorf("a cookie of another kind: %s", cookie)
				}
			}
			if f.swapped.Get("code") != "c" || f.swapped.Get("redirect_uri") != "https://sign-in.relay.test/callback" || len(f.swapped.Get("code_verifier")) < 43 {
				t.Errorf("the code was swapped with %v", f.swapped)
			}
		})
	}
}

// TestProvidersThatCannotBeBelieved uses tokens that do not belong to this sign-in.
func TestProvidersThatCannotBeBelieved(t *testing.T) {
	for name, claims := range map[string]map[string]any{
		"of another sign-in":  {"nonce": "other"},
		"for another program": {"aud": "other"},
		"of another provider": {"iss": "https://login.example.com"},
		"out of date":         {"exp": time.Now().Add(-time.Hour).Unix()},
		"of nobody":           {"sub": ""},
		"of a long name":      {"sub": strings.Repeat("x", 256)},
	} {
		f := newFakeProvider(t)
		f.claims = claims
		if answer, who := f.signIn(t, f.visitors(nil), site(&policy.SignIn{Provider: "company", Anyone: true})); who != nil || answer.Code != http.StatusForbidden {
			t.Errorf("%s: status %d, %+v", name, answer.Code, who)
		}
	}
	f := newFakeProvider(t)
	for more, want := range map[string]int{"": 303, "&iss=https%3A%2F%2Flogin.example.com": 400, "&iss=": 400} {
		if answer, who := f.signInWith(t, f.visitors(nil), site(&policy.SignIn{Provider: "company", Anyone: true}), more); answer.Code != want || (who != nil) != (want == 303) {
			t.Errorf("with %q: status %d, %+v", more, answer.Code, who)
		}
	}
	f.userInfo = map[string]any{"sub": "8", "email": "boss@example.com", "email_verified": true}
	if answer, who := f.signIn(t, f.visitors(nil), site(&policy.SignIn{Provider: "company", Anyone: true})); who != nil || answer.Code != http.StatusForbidden {
		t.Errorf("another person by userinfo: status %d, %+v", answer.Code, who)
	}
}

func TestProviderThatIsAway(t *testing.T) {
	f := newFakeProvider(t)
	f.down = true
	v, s := f.visitors(nil), site(&policy.SignIn{Provider: "company", Anyone: true})
	if asked := v.Status()[0].Asked; !asked.IsZero() {
		t.Errorf("it was asked at %v", asked)
	}
	for range 20 {
		w := httptest.NewRecorder()
		v.Begin(w, httptest.NewRequest(http.MethodGet, "https://shop.relay.test/", nil), s, "/", refuse)
		if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	}
	if f.asked != 1 {
		t.Errorf("20 visitors had it asked %d times", f.asked)
	}
	if said := v.Status()[0]; !strings.Contains(said.Error, "502") || len(said.Error) > 500 || said.Asked.IsZero() {
		t.Errorf("the status says %+v", said)
	}
	// It is back, and known; then away again, and still good enough.
	p := v.providers["company"].source.(*openID)
	f.down = false
	age(p, failedFor)
	if _, who := f.signIn(t, v, s); who == nil || v.Status()[0].Error != "" {
		t.Errorf("it is back: %+v, %q", who, v.Status()[0].Error)
	}
	f.down = true
	age(p, knownFor)
	if _, who := f.signIn(t, v, s); who == nil || v.Status()[0].Error == "" {
		t.Errorf("it is away again: %+v, %q", who, v.Status()[0].Error)
	}
	f.issuer = "https://login.example.com"
	if _, err := newOpenID(Provider{Name: "x", Issuer: f.URL}, http.DefaultClient).discover(t.Context()); err == nil {
		t.Error("a provider of another name is believed")
	}
}

// age makes what is known about a provider older.
func age(p *openID, by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at, p.failed = p.at.Add(-by), p.failed.Add(-by)
}

func TestWhoNavigates(t *testing.T) {
	for _, c := range []struct {
		method string
		header map[string]string
		want   bool
	}{
		{"GET", map[string]string{"Accept": "text/html,*/*"}, true},
		{"HEAD", map[string]string{"Sec-Fetch-Mode": "navigate"}, true},
		{"GET", map[string]string{"Sec-Fetch-Mode": "cors", "Accept": "text/html"}, false},
		{"GET", map[string]string{"Accept": "*/*"}, false},
		{"POST", map[string]string{"Sec-Fetch-Mode": "navigate", "Accept": "text/html"}, false},
		{"GET", map[string]string{"Upgrade": "websocket", "Accept": "text/html"}, false},
	} {
		r := httptest.NewRequest(c.method, "/", nil)
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		if got := Navigates(r); got != c.want {
			t.Errorf("%s %v: got %v", c.method, c.header, got)
		}
	}
}

func TestCookiesOfTheRelayAreTakenOut(t *testing.T) {
	for lines, want := range map[string]string{
		"a=1; __Host-adit-visitor=x; b=2":           "a=1; b=2",
		"adit-visitor=x":                            "",
		"__Host-adit-sign-in=x|c=3;adit-sign-in=y ": "c=3",
		"a=1|b=2":                   "a=1|b=2",
		"adit-visitors=1; xadit=2":  "adit-visitors=1; xadit=2",
		" adit-visitor = x ; a = 1": "a = 1",
	} {
		h := http.Header{"Cookie": strings.Split(lines, "|")}
		Strip(h)
		if got := strings.Join(h["Cookie"], "|"); got != want {
			t.Errorf("%q: got %q, want %q", lines, got, want)
		}
	}
}

// TestSealedTextsAreOfOnePurpose checks that what is sealed for one place does not open
// at another.
func TestSealedTextsAreOfOnePurpose(t *testing.T) {
	s, other := newSeal(make([]byte, 32)), newSeal([]byte(strings.Repeat("k", 32)))
	text := s.close("visitor", "shop.relay.test", policy.Identity{Subject: "7"})
	var who policy.Identity
	if !s.open("visitor", "shop.relay.test", text, &who) || who.Subject != "7" {
		t.Fatal("it does not open")
	}
	for i, opens := range []bool{
		s.open("state", "shop.relay.test", text, &who), s.open("visitor", "bank.relay.test", text, &who), other.open("visitor", "shop.relay.test", text, &who),
		s.open("visitor", "shop.relay.test", text[:len(text)-1], &who), s.open("visitor", "shop.relay.test", "", &who), s.open("visitor", "shop.relay.test", "%", &who),
	} {
		if opens {
			t.Errorf("case %d opens", i)
		}
	}
	if a, b := s.close("visitor", "", 1), s.close("visitor", "", 1); a == b {
		t.Error("two are the same")
	}
}

// TestCookiesFit puts as many groups as possible into a cookie that browsers accept.
func TestCookiesFit(t *testing.T) {
	f := newFakeProvider(t)
	var groups []string
	for i := range 1000 {
		groups = append(groups, fmt.Sprintf("group <%d> of a \"long\" name", i))
	}
	f.claims = map[string]any{"groups": groups, "sub": strings.Repeat("<", 255), "email": strings.Repeat("e", 64) + "@" + strings.Repeat("d", 250) + ".test", "email_verified": true}
	answer, who := f.signIn(t, f.visitors(nil), site(&policy.SignIn{Provider: "company", Groups: groups}))
	if who == nil || len(who.Groups) == 0 {
		t.Fatalf("status %d: %s", answer.Code, answer.Body)
	}
	for _, line := range answer.Header()["Set-Cookie"] {
		if len(line) > 4096 {
			t.Errorf("a cookie has %d bytes", len(line))
		}
	}
}
