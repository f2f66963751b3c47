package console

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"adit/internal/guess"
)

// TestGuessesOfCodesAreBoundedForTheAccount makes somebody who knows a password try each
// code from a different address.
func TestGuessesOfCodesAreBoundedForTheAccount(t *testing.T) {
	r := serve(t)
	owner := r.owner()
	secret := owner.want(200, "POST", "/api/v1/account/totp", `{"password":"`+testPass+`"}`)["secret"].(string)
	owner.want(200, "PUT", "/api/v1/account/totp", `{"code":"`+code(t, secret, 0)+`"}`)
	r.cfg.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	try := func(n int, status int, code string) {
		t.Helper()
		proxied(r, fmt.Sprintf("198.51.100.%d", n)).want(status, "POST", "/api/v1/session", `{"name":"ann","password":"`+testPass+`","code":"`+code+`"}`)
	}
	for n := range guess.AtOnce {
		try(n, 401, "123")
	}
	try(guess.AtOnce, 429, code(t, secret, 1))
}

// TestLoginsEndWhereTheyAreAskedFor leaves in the store what no longer counts, as another
// node might.
func TestLoginsEndWhereTheyAreAskedFor(t *testing.T) {
	for name, end := range map[string]func(r *running) error{
		"by the clock": func(r *running) error {
			for key, value := range r.keep.List(loginPrefix) {
				var l login
				if err := json.Unmarshal(value, &l); err != nil {
					return err
				}
				l.Expires = time.Now()
				_, rev, _ := r.keep.Get(key)
				if _, err := r.put(t.Context(), key, l, rev); err != nil {
					return err
				}
			}
			return nil
		},
		"with an account that was disabled": func(r *running) error {
			_, err := r.change(t.Context(), "ann", func(a *record) error {
				a.Disabled = true
				return nil
			})
			return err
		},
	} {
		r := serve(t)
		b := r.owner()
		b.want(200, "GET", "/api/v1/logins", "")
		if err := end(r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if resp, _ := b.send("GET", "/api/v1/logins", ""); resp.StatusCode != 401 {
			t.Errorf("%s: got status %d, want 401", name, resp.StatusCode)
		}
	}
}
