package folder

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"adit/internal/guess"
)

func with(password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("anybody", password) }
}

func TestPasswordIsAskedFor(t *testing.T) {
	f := shared(t, Options{Password: "opensesame"})
	for _, target := range []string{"/", "/a.txt", "/none"} {
		if resp := ask(f, "GET", target); resp.StatusCode != 401 || resp.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s without a password: got %d, want 401", target, resp.StatusCode)
		}
	}
	for range 100 { // a browser asks without one for each page's parts, which is no guess
		if resp := ask(f, "GET", "/a.txt"); resp.StatusCode != 401 {
			t.Fatalf("once more without a password: got %d, want 401", resp.StatusCode)
		}
	}
	if resp := ask(f, "GET", "/a.txt", with("opensesame")); resp.StatusCode != 200 {
		t.Errorf("with the password: got %d, want 200", resp.StatusCode)
	}
}

// from has a request come from an address, by way of a relay.
func from(forwarded string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("X-Forwarded-For", forwarded) }
}

// TestGuessesHaveAPace also where somebody does not wait for the answer: it is to be
// no sign of a right guess that there is one.
func TestGuessesHaveAPace(t *testing.T) {
	f := shared(t, Options{Password: "opensesame"})
	synctest.Test(t, func(t *testing.T) {
		const guesser = "192.0.2.1"
		try := func(password string) int {
			ctx, giveUp := context.WithTimeout(t.Context(), time.Millisecond)
			defer giveUp()
			return ask(f, "GET", "/a.txt", with(password), from(guesser), func(r *http.Request) { *r = *r.WithContext(ctx) }).StatusCode
		}
		for range 100 {
			try("guess")
		}
		if got := try("opensesame"); got != 429 {
			t.Errorf("the 101st guess, which is right: got %d, want 429", got)
		}
		if got := ask(f, "GET", "/a.txt", with("opensesame"), from("192.0.2.2, 192.0.2.1, 198.51.100.1")).StatusCode; got != 429 {
			t.Errorf("the same behind a load balancer, who claims to be another: got %d, want 429", got)
		}
		for name, forwarded := range map[string]string{
			"another visitor": "192.0.2.2", "one behind a load balancer": "192.0.2.1, 192.0.2.3, 198.51.100.1",
			"one behind another relay": "192.0.2.1, 2001:db8::1, 198.51.100.1",
		} {
			if got := ask(f, "GET", "/a.txt", with("opensesame"), from(forwarded)).StatusCode; got != 200 {
				t.Errorf("%s: got %d, want 200", name, got)
			}
		}
		time.Sleep(guess.Again)
		if got := try("opensesame"); got != 200 {
			t.Errorf("after a while: got %d, want 200", got)
		}
		// Who knows it needs no tries.
		for range 100 {
			if got := try("opensesame"); got != 200 {
				t.Fatalf("who knows it: got %d, want 200", got)
			}
		}
		if got := try("guess"); got != 401 {
			t.Errorf("a wrong one: got %d, want 401", got)
		}
		if got := try("opensesame"); got != 429 {
			t.Errorf("behind a wrong one, which was the last: got %d, want 429", got)
		}
	})
}
