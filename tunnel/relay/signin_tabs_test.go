package relay

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"adit/internal/identitytest"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
)

// loginPage opens a page and returns the provider's form that it leads to.
func loginPage(tb testing.TB, c *http.Client, page string) (action string, form url.Values) {
	tb.Helper()
	resp, body := open(tb, c, http.MethodGet, page, "")
	id := hiddenID.FindStringSubmatch(body)
	if resp.Request.URL.Hostname() != "localhost" || id == nil {
		tb.Fatalf("%s led to %s: status %d, %s", page, resp.Request.URL, resp.StatusCode, body)
	}
	return resp.Request.URL.ResolveReference(&url.URL{Path: "/login/username"}).String(),
		url.Values{"id": {id[1]}, "username": {"test-user@localhost"}, "password": {identitytest.Password}}
}

// TestTabsSignInAtOnce covers a browser that reopens yesterday's tabs and comes to the
// provider with all of them.
func TestTabsSignInAtOnce(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(whoSite))
	s.setPolicy(t, "shop", onlyTheFirst)
	one := s.browser(t)
	firstAction, firstForm := loginPage(t, one, s.https+"/first")
	secondAction, secondForm := loginPage(t, one, s.https+"/second")
	arrives := func(name, action string, form url.Values, path string) {
		t.Helper()
		resp, body := open(t, one, http.MethodPost, action, form.Encode())
		if resp.StatusCode != 200 || resp.Request.URL.Path != path || !strings.Contains(body, "email=test-user@zitadel.ch") {
			t.Errorf("%s: status %d at %s: %s", name, resp.StatusCode, resp.Request.URL, body)
		}
	}
	arrives("the first tab", firstAction, firstForm, "/first")
	arrives("the second tab, when the first has signed in", secondAction, secondForm, "/second")

	// Two whose requests had no cookie yet: the one whose cookie was overwritten
	// comes back first.
	two := s.browser(t)
	lostAction, lostForm := loginPage(t, two, s.https+"/lost")
	site, err := url.Parse(s.https)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range two.Jar.Cookies(site) {
		two.Jar.SetCookies(site, []*http.Cookie{{Name: c.Name, Path: "/", Secure: true, MaxAge: -1}})
	}
	loginPage(t, two, s.https+"/kept")
	resp, body := open(t, two, http.MethodPost, lostAction, lostForm.Encode())
	if resp.Request.URL.Hostname() == "localhost" { // the provider asks again
		action := resp.Request.URL.ResolveReference(&url.URL{Path: "/login/username"}).String()
		if id := hiddenID.FindStringSubmatch(body); id != nil {
			lostForm.Set("id", id[1])
		}
		resp, body = open(t, two, http.MethodPost, action, lostForm.Encode())
	}
	if resp.StatusCode != 200 || resp.Request.URL.Path != "/lost" {
		t.Errorf("a tab whose cookie another has overwritten: status %d at %s: %s", resp.StatusCode, resp.Request.URL, body)
	}
}

// TestEndsOfSignInsNeedNoClocks uses two nodes, one where a visitor signs in and one that
// ends the sign-in, whose clocks may differ by minutes.
func TestEndsOfSignInsNeedNoClocks(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(whoSite))
	s.setPolicy(t, "shop", onlyTheFirst)
	c := s.browser(t)
	const user = "test-user@zitadel.ch"
	for _, off := range []time.Duration{-5 * time.Minute, 5 * time.Minute} {
		if resp, body := signIn(t, c, s.https+"/", "test-user@localhost"); resp.StatusCode != 200 || !strings.Contains(body, user) {
			t.Fatalf("with a clock off by %s: signed in: status %d at %s: %s", off, resp.StatusCode, resp.Request.URL, body)
		}
		at := time.Now().Add(off).UTC()
		if err := s.store.Ended.Set(t.Context(), store.EndedSignIns{User: user, At: at, Until: at.Add(24 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		if _, body := open(t, c, http.MethodGet, s.https+"/", ""); strings.Contains(body, "user=") {
			t.Errorf("with a clock off by %s: the sign-in outlasts its end", off)
		}
	}
	if resp, body := signIn(t, c, s.https+"/", "test-user@localhost"); resp.StatusCode != 200 || !strings.Contains(body, user) {
		t.Errorf("signed in behind an end of a clock ahead: status %d at %s: %s", resp.StatusCode, resp.Request.URL, body)
	}
}

// TestSignInCookiesGoToNoOrigin checks that cookies are removed: a browser keeps them
// after the policy that asked for a sign-in is gone, and another client may have the name
// by then.
func TestSignInCookiesGoToNoOrigin(t *testing.T) {
	s := startSite(t, signInConfig(t), http.HandlerFunc(whoSite))
	s.setPolicy(t, "shop", onlyTheFirst)
	c := s.browser(t)
	if resp, _ := signIn(t, c, s.https+"/", "test-user@localhost"); resp.StatusCode != 200 {
		t.Fatalf("status %d", resp.StatusCode)
	}
	site, _ := url.Parse(s.https)
	c.Jar.SetCookies(site, []*http.Cookie{{Name: "cart", Value: "1"}})
	for _, policy := range []string{`{"max_body":1000}`, `{"basic_auth":[{"name":"robot","password":"secret"}],"shadow":true}`, `{"shadow":true,` + onlyTheFirst[1:], ""} {
		if policy != "" {
			s.setPolicy(t, "shop", policy)
		} else if err := s.store.Policies.Delete(t.Context(), claims.TargetDomain("shop.relay.test")); err != nil {
			t.Fatal(err)
		}
		if resp, body := open(t, c, http.MethodGet, s.https+"/", ""); resp.StatusCode != 200 || !strings.Contains(body, `cookie="cart=1"`) {
			t.Errorf("policy %q: status %d, %s", policy, resp.StatusCode, body)
		}
	}
}
