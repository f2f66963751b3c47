package console

import (
	"net/http"
	"testing"

	"adit/internal/guess"
)

const (
	rightLogin = `{"name":"ann","password":"` + testPass + `"}`
	wrongLogin = `{"name":"ann","password":"guess guess"}`
)

// exhaust makes failed attempts until none are left.
func exhaust(b *browser) {
	b.r.t.Helper()
	for range guess.AtOnce {
		b.want(401, "POST", "/api/v1/session", wrongLogin)
	}
	b.want(429, "POST", "/api/v1/session", rightLogin)
}

// TestSecretsThatNobodyGuessesAreNotLockedOut checks that programs, and the commands on
// the relay's machine, are let in however many failed attempts come from their address. A
// secret that a person may have chosen has to wait.
func TestSecretsThatNobodyGuessesAreNotLockedOut(t *testing.T) {
	r := serve(t)
	owner := r.owner()
	made := owner.want(201, "POST", "/api/v1/tokens", `{"name":"siem","scope":"read"}`)
	exhaust(&browser{r: r})
	(&browser{r: r, token: made["token"].(string)}).want(200, "GET", "/api/v1/clients", "")
	(&browser{r: r, token: "wrong"}).want(429, "GET", "/api/v1/clients", "")
	(&browser{r: r, token: testToken}).want(429, "GET", "/api/v1/clients", "")

	const strong = "adit_admin_q0Uo1m3vYB0l8m9v6vDqzJ0yq4oYx6Ck2m8sUuR7T5E"
	c, err := New(Config{Relay: r.relay, Keeper: r.keep, AdminToken: strong, hashMemory: 64})
	if err != nil {
		t.Fatal(err)
	}
	c.limits = r.limits
	for _, secret := range []string{strong, "wrong"} {
		req, err := http.NewRequest(http.MethodGet, "/api/v1/clients", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.RemoteAddr = "127.0.0.1:1"
		_, err = c.bearer(req, secret)
		if right := secret == strong; (err == nil) != right {
			t.Errorf("%s: got %v", secret, err)
		}
	}
}
