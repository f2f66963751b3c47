package policy

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestWhoIsLetIn(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	ann := Identity{Provider: "company", Subject: "7", Email: "ann@example.com", Groups: []string{"staff"}, Until: now.Add(time.Hour)}
	with := func(change func(*Identity)) *Identity { who := ann; change(&who); return &who }
	for name, c := range map[string]struct {
		doc  string
		who  *Identity
		rule string
	}{
		"nobody":            {`{"emails":["ann@example.com"]}`, nil, RuleSignIn},
		"an address":        {`{"emails":[" Ann@Example.COM "]}`, &ann, ""},
		"another letter":    {`{"emails":["@gİthub.example"]}`, with(func(i *Identity) { i.Email = "ann@github.example" }), RuleSignInWho},
		"another's case":    {`{"emails":["Ünal@gİthub.example"]}`, with(func(i *Identity) { i.Email = "ünal@gİthub.example" }), ""},
		"a domain":          {`{"emails":["@example.com"]}`, &ann, ""},
		"a domain under it": {`{"emails":["@example.com"]}`, with(func(i *Identity) { i.Email = "ann@evil.example.com" }), RuleSignInWho},
		"an ending alike":   {`{"emails":["@example.com"]}`, with(func(i *Identity) { i.Email = "ann@badexample.com" }), RuleSignInWho},
		"two at signs":      {`{"emails":["@example.com"]}`, with(func(i *Identity) { i.Email = "ann@example.com@evil.test" }), RuleSignInWho},
		"no address":        {`{"emails":["@example.com"]}`, with(func(i *Identity) { i.Email = "" }), RuleSignInWho},
		"only the at sign":  {`{"emails":["@example.com"]}`, with(func(i *Identity) { i.Email = "@example.com" }), RuleSignInWho},
		"another address":   {`{"emails":["eve@example.com"]}`, &ann, RuleSignInWho},
		"a group":           {`{"groups":["staff"]}`, &ann, ""},
		"a group's case":    {`{"groups":["Staff"]}`, &ann, RuleSignInWho},
		"either":            {`{"emails":["eve@example.com"],"groups":["staff"]}`, &ann, ""},
		"anyone":            {`{"anyone":true}`, with(func(i *Identity) { i.Email, i.Groups = "", nil }), ""},
		"another provider":  {`{"anyone":true}`, with(func(i *Identity) { i.Provider = "other" }), RuleSignIn},
		"out of date":       {`{"anyone":true}`, with(func(i *Identity) { i.Until = now }), RuleSignIn},
	} {
		d, err := Parse([]byte(`{"sign_in":{"provider":"company",` + c.doc[1:] + `}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p := New(d, nil)
		r := Request{Addr: netip.MustParseAddr("192.0.2.1"), HTTP: true, Identity: c.who}
		got, release := p.Enter(r, now)
		if got.Rule != c.rule || got.Allowed != (c.rule == "") {
			t.Errorf("%s: got %+v, want %q", name, got, c.rule)
		}
		if explained, steps := p.Explain(r, now); explained.Rule != c.rule || len(steps) != 1 || steps[0].Detail == "" {
			t.Errorf("%s: explained as %+v by %+v", name, explained, steps)
		}
		if !got.Allowed {
			continue
		}
		guest := p.Guest(r, now)
		if later := p.Keeps(guest, now.Add(time.Minute)); !later.Allowed {
			t.Errorf("%s: a minute later %+v", name, later)
		}
		if later := p.Keeps(guest, c.who.Until); later.Rule != RuleSignIn {
			t.Errorf("%s: at the end of the sign-in %+v", name, later)
		}
		release()
	}
}

// TestSignInIsForHTTP checks that other types are closed, and the sign-in pages open.
func TestSignInIsForHTTP(t *testing.T) {
	now := time.Now()
	d, err := Parse([]byte(`{"deny":["192.0.2.9"],"rate":1,"burst":2,"sign_in":{"provider":"company","anyone":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	p := New(d, nil)
	if got, _ := p.Enter(Request{Addr: netip.MustParseAddr("192.0.2.1"), SigningIn: true}, now); got.Rule != RuleSignIn {
		t.Errorf("a connection: %+v", got)
	}
	signing := Request{Addr: netip.MustParseAddr("192.0.2.2"), HTTP: true, SigningIn: true}
	for i, want := range []string{"", "", RuleRate} {
		if got, _ := p.Enter(signing, now); got.Rule != want {
			t.Errorf("page %d of signing in: %+v, want %q", i, got, want)
		}
	}
	signing.Addr = netip.MustParseAddr("192.0.2.9")
	if got, _ := p.Enter(signing, now); got.Rule != RuleDeny {
		t.Errorf("from an address that is refused: %+v", got)
	}
	if !p.Timed() {
		t.Error("nobody looks whether sign-ins have ended")
	}
}

// TestEitherPasswordOrSignIn has a policy with both.
func TestEitherPasswordOrSignIn(t *testing.T) {
	now := time.Now()
	d, err := Parse([]byte(`{"basic_auth":[{"name":"robot","password":"secret"}],"sign_in":{"provider":"company","emails":["@example.com"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	p, addr := New(d, nil), netip.MustParseAddr("192.0.2.1")
	eve := &Identity{Provider: "company", Email: "eve@evil.test", Until: now.Add(time.Hour)}
	ann := &Identity{Provider: "company", Email: "ann@example.com", Until: now.Add(time.Hour)}
	for name, c := range map[string]struct {
		r    Request
		rule string
		who  string
	}{
		"neither":                  {Request{}, RuleSignIn, ""},
		"the password":             {Request{User: "robot", Password: "secret", HasUser: true}, "", "robot"},
		"a wrong one":              {Request{User: "robot", Password: "guess", HasUser: true}, RuleBasicAuth, ""},
		"signed in":                {Request{Identity: ann}, "", "ann@example.com"},
		"signed in, wrong one":     {Request{Identity: ann, User: "robot", Password: "guess", HasUser: true}, "", "ann@example.com"},
		"somebody else":            {Request{Identity: eve}, RuleSignInWho, ""},
		"somebody else, right one": {Request{Identity: eve, User: "robot", Password: "secret", HasUser: true}, "", "robot"},
	} {
		c.r.Addr, c.r.HTTP = addr, true
		got, release := p.Enter(c.r, now)
		if got.Rule != c.rule {
			t.Errorf("%s: got %+v, want %q", name, got, c.rule)
		}
		if explained, _ := p.Explain(c.r, now); explained.Rule != c.rule {
			t.Errorf("%s: explained as %+v", name, explained)
		}
		if got.Allowed {
			if g := p.Guest(c.r, now); g.Name() != c.who || !p.Keeps(g, now).Allowed {
				t.Errorf("%s: let in as %+v", name, g)
			}
		}
		release()
	}
}

func TestSignInFaults(t *testing.T) {
	many, _ := json.Marshal(strings.Split(strings.Repeat("a@b.test ", maxWho+1), " ")[:maxWho+1])
	for doc, field := range map[string]string{
		`{"sign_in":{}}`:                                                   "sign_in.provider",
		`{"sign_in":{"provider":"Our company"}}`:                           "sign_in.provider",
		`{"sign_in":{"provider":"company"}}`:                               "sign_in.emails",
		`{"sign_in":{"provider":"company","anyone":false}}`:                "sign_in.emails",
		`{"sign_in":{"provider":"a","emails":["ann"]}}`:                    "sign_in.emails[0]",
		`{"sign_in":{"provider":"a","emails":["a@b","a@"]}}`:               "sign_in.emails[1]",
		`{"sign_in":{"provider":"a","emails":["a b@c"]}}`:                  "sign_in.emails[0]",
		`{"sign_in":{"provider":"a","groups":[""]}}`:                       "sign_in.groups[0]",
		`{"sign_in":{"provider":"a","emails":["a@b.test"],"anyone":true}}`: "sign_in.anyone",
		`{"sign_in":{"provider":"a","emails":"a@b.test"}}`:                 "sign_in.emails",
		`{"sign_in":{"provider":"a","emails":` + string(many) + `}}`:       "sign_in.emails",
		`{"sign_in":true}`:                                                 "sign_in",
		`{"sign_in":{"issuer":"x"}}`:                                       "issuer",
		`{"sign_in":{"provider":"` + strings.Repeat("a", 64) + `"}}`:       "sign_in.provider",
	} {
		_, err := Parse([]byte(doc))
		var fault *FieldError
		if !errors.As(err, &fault) || fault.Field != field {
			t.Errorf("%.80s: got %v, want a fault of %s", doc, err, field)
		}
	}
}
