package policy

import (
	"testing"
	"time"
)

// TestWhoMayStay applies the next policy to visitors that were let in by the one before.
func TestWhoMayStay(t *testing.T) {
	const (
		users  = `{"basic_auth":[{"name":"ann","password":"secret"}]}`
		others = `{"basic_auth":[{"name":"ann","password":"another"}]}`
		gone   = `{"basic_auth":[{"name":"bob","password":"secret"}]}`
		signIn = `{"sign_in":{"provider":"company","anyone":true}}`
		hook   = `{"webhooks":[{"path":"/hook","provider":"gitlab","secrets":["the first secret"]}]}`
	)
	now := time.Now()
	for name, c := range map[string]struct {
		before, behind string
		came           Request
		rule           string
	}{
		"nothing is asked":            {`{}`, `{}`, Request{}, ""},
		"the address is denied":       {`{}`, `{"deny":["192.0.2.0/24"]}`, Request{}, RuleDeny},
		"the address is not allowed":  {`{}`, `{"allow":["198.51.100.0/24"]}`, Request{}, RuleAllow},
		"a password is asked":         {`{}`, users, Request{}, RuleBasicAuth},
		"the password is the same":    {users, users, Request{HTTP: true, HasUser: true, User: "ann", Password: "secret"}, ""},
		"the password is another":     {users, others, Request{HTTP: true, HasUser: true, User: "ann", Password: "secret"}, RuleBasicAuth},
		"the user is no more":         {users, gone, Request{HTTP: true, HasUser: true, User: "ann", Password: "secret"}, RuleBasicAuth},
		"a sign-in is asked":          {`{}`, signIn, Request{}, RuleSignIn},
		"who is signing in":           {signIn, signIn, Request{HTTP: true, SigningIn: true, Target: "/.adit/sign-in"}, ""},
		"nobody signs in any more":    {signIn, users, Request{HTTP: true, SigningIn: true, Target: "/.adit/sign-in"}, RuleBasicAuth},
		"a signature is asked":        {`{}`, hook, Request{HTTP: true, Target: "/hook"}, RuleWebhook},
		"a signature, of other paths": {`{}`, hook, Request{HTTP: true, Target: "/"}, ""},
	} {
		c.came.Addr = addr("192.0.2.1")
		before := parsed(t, c.before)
		guest := before.Guest(c.came, now)
		behind := before
		if c.behind != c.before {
			behind = Renew(before, "", parse(t, c.behind), nil)
		}
		if got := behind.Keeps(guest, now); got.Rule != c.rule || got.Allowed != (c.rule == "") {
			t.Errorf("%s: got %+v, want the rule %q", name, got, c.rule)
		}
	}
}
