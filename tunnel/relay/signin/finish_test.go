package signin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"adit/tunnel/relay/policy"
)

// TestStatesOfOtherSignIns makes a visitor come back to a site with something that was
// sealed for another one, or too long ago. For the right state, the provider's answer is
// a refusal, to distinguish it from the others.
func TestStatesOfOtherSignIns(t *testing.T) {
	f := newFakeProvider(t)
	v, at, own := f.visitors(nil), site(&policy.SignIn{Provider: "company", Anyone: true}), randomText()
	for name, c := range map[string]struct {
		change func(*state)
		want   int
	}{
		"the site's own":      {func(*state) {}, http.StatusForbidden},
		"of another host":     {func(s *state) { s.Host = "bank.relay.test" }, http.StatusBadRequest},
		"of another scheme":   {func(s *state) { s.Scheme = "http" }, http.StatusBadRequest},
		"of another provider": {func(s *state) { s.Provider = "other" }, http.StatusBadRequest},
		"out of date":         {func(s *state) { s.Until = time.Now().Unix() }, http.StatusBadRequest},
		"of another sign-in":  {func(s *state) { s.ID = randomText() }, http.StatusFound}, // it begins anew
	} {
		st := state{Provider: "company", Scheme: at.Scheme, Host: at.Host, Target: "/cart", ID: randomText(), Until: time.Now().Add(pendingLife).Unix()}
		st.Browser = v.secretsOf(own, st.ID).browser
		c.change(&st)
		query := url.Values{"state": {v.seal.close("state", "", st)}, "error": {"access_denied"}}
		r := httptest.NewRequest(http.MethodGet, "https://shop.relay.test"+signInPath+"?"+query.Encode(), nil)
		r.AddCookie(&http.Cookie{Name: cookieName(pendingCookie, at), Value: own})
		w := httptest.NewRecorder()
		if v.Serve(w, r, at, refuse); w.Code != c.want {
			t.Errorf("%s: got status %d, want %d", name, w.Code, c.want)
		}
	}
}

// TestCookiesOfVisitorsEnd makes a browser keep a cookie for longer than it was told to.
func TestCookiesOfVisitorsEnd(t *testing.T) {
	f := newFakeProvider(t)
	v, at := f.visitors(nil), site(&policy.SignIn{Provider: "company", Anyone: true})
	for name, c := range map[string]struct {
		until time.Duration
		want  bool
	}{"in time": {time.Minute, true}, "out of date": {-time.Second, false}} {
		who := policy.Identity{Provider: "company", Subject: "7", Until: time.Now().Add(c.until)}
		r := httptest.NewRequest(http.MethodGet, "https://shop.relay.test/cart", nil)
		r.AddCookie(&http.Cookie{
			Name: cookieName(visitorCookie, at), Value: v.seal.close("visitor", at.sealedFor(), signedIn{who, v.providers["company"].is}),
		})
		if got := v.Identity(r, at) != nil; got != c.want {
			t.Errorf("%s: the visitor is signed in: got %v, want %v", name, got, c.want)
		}
	}
}

// TestReturnFromTheProvider checks that it leads only to where the relay's seal allows.
func TestReturnFromTheProvider(t *testing.T) {
	f := newFakeProvider(t)
	v := f.visitors(nil)
	sealed := func(until time.Duration) string {
		return v.seal.close("state", "", state{Scheme: "https", Host: "shop.relay.test", Until: time.Now().Add(until).Unix()})
	}
	for name, c := range map[string]struct {
		method, target string
		want           int
		location       string
	}{
		"in time":        {http.MethodGet, returnPath + "?state=" + sealed(time.Minute) + "&code=c", http.StatusSeeOther, "https://shop.relay.test" + signInPath},
		"out of date":    {http.MethodGet, returnPath + "?state=" + sealed(-time.Second), http.StatusBadRequest, ""},
		"not sealed":     {http.MethodGet, returnPath + "?state=c", http.StatusBadRequest, ""},
		"another path":   {http.MethodGet, "/?state=" + sealed(time.Minute), http.StatusNotFound, ""},
		"another method": {http.MethodPost, returnPath + "?state=" + sealed(time.Minute), http.StatusNotFound, ""},
	} {
		w := httptest.NewRecorder()
		v.Return(w, httptest.NewRequest(c.method, "https://sign-in.relay.test"+c.target, nil), refuse)
		to, _, _ := strings.Cut(w.Header().Get("Location"), "?")
		if w.Code != c.want || to != c.location {
			t.Errorf("%s: got status %d to %q, want %d to %q", name, w.Code, to, c.want, c.location)
		}
	}
}
