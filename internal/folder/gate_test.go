package folder

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
	if resp := ask(f, "GET", "/a.txt", with("opensesame")); resp.StatusCode != 200 {
		t.Errorf("with the password: got %d, want 200", resp.StatusCode)
	}
}

// TestGuessesTakeTheirTime: guessing has a pace, however many guess at once, and
// whoever knows the password does not wait behind them.
func TestGuessesTakeTheirTime(t *testing.T) {
	f := shared(t, Options{Password: "opensesame"})
	synctest.Test(t, func(t *testing.T) {
		f.gate = newGate("opensesame") // its waits are of the bubble's time
		start := time.Now()
		var guesses sync.WaitGroup
		for range 3 * wrongAtOnce {
			guesses.Go(func() {
				if resp := ask(f, "GET", "/a.txt", with("guess")); resp.StatusCode != 401 {
					t.Errorf("a guess: got %d, want 401", resp.StatusCode)
				}
			})
		}
		synctest.Wait()
		if resp := ask(f, "GET", "/a.txt", with("opensesame")); resp.StatusCode != 200 || time.Since(start) != 0 {
			t.Errorf("who knows it: got %d after %s, want 200 at once", resp.StatusCode, time.Since(start))
		}
		guesses.Wait()
		if took := time.Since(start); took != 3*wrongWait {
			t.Errorf("three turns of guesses took %s, want %s", took, 3*wrongWait)
		}
	})
}

func TestGuessThatIsGivenUpHoldsNoPlace(t *testing.T) {
	f := shared(t, Options{Password: "opensesame"})
	synctest.Test(t, func(t *testing.T) {
		f.gate = newGate("opensesame")
		ctx, cancel := context.WithCancel(t.Context())
		var guesses sync.WaitGroup
		for range 2 * wrongAtOnce {
			guesses.Go(func() {
				ask(f, "GET", "/", with("guess"), func(r *http.Request) { *r = *r.WithContext(ctx) })
			})
		}
		synctest.Wait()
		start := time.Now()
		cancel()
		guesses.Wait()
		if took := time.Since(start); took != 0 {
			t.Errorf("guesses that were given up held on for %s", took)
		}
	})
}
