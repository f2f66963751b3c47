package signin

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"adit/tunnel/relay/policy"
)

func TestWhatAnEndEnds(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	mark := func(store int64, number uint64) policy.Mark { return policy.Mark{Store: store, Number: number} }
	for name, c := range map[string]struct {
		since time.Duration // before or behind the end, by the clocks of nodes
		mark  policy.Mark
		end   policy.Mark
		want  bool
	}{
		"before":                         {-time.Second, mark(1, 6), mark(1, 7), true},
		"behind":                         {time.Second, mark(1, 7), mark(1, 7), false},
		"before, by a clock ahead":       {time.Hour, mark(1, 6), mark(1, 7), true},
		"behind, by a clock behind":      {-5 * time.Minute, mark(1, 7), mark(1, 7), false},
		"before, and the store set back": {-time.Hour, mark(1, 50), mark(1, 7), true},
		"before, in another store":       {-time.Second, mark(2, 50), mark(1, 7), true},
		"behind, in another store":       {time.Second, mark(2, 3), mark(1, 7), false},
		"before, without a mark":         {0, mark(0, 0), mark(1, 7), true},
		"behind, without a mark":         {time.Millisecond, mark(0, 0), mark(1, 7), false},
		"before, without any mark":       {-time.Second, mark(0, 0), mark(0, 0), true},
		"behind, without any mark":       {time.Millisecond, mark(0, 0), mark(0, 0), false},
	} {
		who := &policy.Identity{Since: at.Add(c.since), Mark: c.mark}
		if got := (End{at, c.end}).over(who); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
		if (End{}).over(who) {
			t.Errorf("%s: no end ends it", name)
		}
	}
}

func TestSignInEndsWithItsProvider(t *testing.T) {
	f := newFakeProvider(t)
	at := site(&policy.SignIn{Provider: "company", Anyone: true})
	done, who := f.signIn(t, f.visitors(nil), at)
	if who == nil {
		t.Fatal("nobody signed in")
	}
	next := httptest.NewRequest(http.MethodGet, "https://shop.relay.test/cart", nil)
	for _, c := range done.Result().Cookies() {
		next.AddCookie(c)
	}
	for name, c := range map[string]struct {
		change func(*Provider)
		want   bool
	}{
		"the same":                       {nil, true},
		"another secret":                 {func(p *Provider) { p.ClientSecret = "rotated" }, true},
		"another issuer of the name":     {func(p *Provider) { p.Issuer = "https://other.example" }, false},
		"known there as another":         {func(p *Provider) { p.ClientID = "other" }, false},
		"of another kind":                {func(p *Provider) { p.Kind = GitHub }, false},
		"no provider of the name at all": {func(p *Provider) { p.Name = "other" }, false},
	} {
		if got := f.visitors(c.change).Identity(next, at) != nil; got != c.want {
			t.Errorf("%s: the visitor is signed in: got %t, want %t", name, got, c.want)
		}
	}
}

// TestSignInByHTTPIsNoneByHTTPS sends a cookie intercepted over http over https, where
// nobody could have intercepted one.
func TestSignInByHTTPIsNoneByHTTPS(t *testing.T) {
	f := newFakeProvider(t)
	v := f.visitors(nil)
	for from, to := range map[string]string{"http": "https", "https": "http"} {
		at := site(&policy.SignIn{Provider: "company", Anyone: true})
		at.Scheme = from
		done, who := f.signIn(t, v, at)
		if who == nil {
			t.Fatalf("by %s nobody is signed in: %d %s", from, done.Code, done.Body)
		}
		other := at
		other.Scheme = to
		next := httptest.NewRequest(http.MethodGet, "https://shop.relay.test/cart", nil)
		for _, c := range done.Result().Cookies() {
			c.Name = cookieName(visitorCookie, other)
			next.AddCookie(c)
		}
		if v.Identity(next, other) != nil {
			t.Errorf("a sign-in by %s is one by %s", from, to)
		}
	}
}
