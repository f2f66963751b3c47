package console

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestLoginsEndByTheClock(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name string
		made time.Duration // before now
		over bool
	}{
		{"new", 0, false},
		{"of some hours ago", loginLife - time.Second, false},
		{"at its end", loginLife, true},
		{"of before the clock was set back by hours", -clockSet, false},
		{"of a clock that stood in the next year", -9000 * time.Hour, true},
	} {
		made := now.Add(-c.made)
		if got := (login{Created: made, Expires: made.Add(loginLife)}).over(now); got != c.over {
			t.Errorf("%s: over is %v, want %v", c.name, got, c.over)
		}
	}
}

// TestLoginsEndWithTheAdminToken brings back a browser that was signed in with an admin
// token, after the relay was restarted with the same token or another, and with the same
// store.
func TestLoginsEndWithTheAdminToken(t *testing.T) {
	long := strings.Repeat("a", sureLength)
	for _, c := range []struct {
		name, before, now string
		in                bool
	}{
		{"the same", long, long, true},
		{"another", long, strings.Repeat("b", sureLength), false},
		{"one that may be guessed", testToken, testToken, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := serve(t)
			again := func(token string) {
				next, err := New(Config{Relay: r.relay, Keeper: r.keep, AdminToken: token, SetupCode: testCode, hashMemory: 64})
				if err != nil {
					t.Fatal(err)
				}
				r.Console = next
				server := httptest.NewServer(next)
				t.Cleanup(server.Close)
				r.url = server.URL
			}
			again(c.before)
			old := &browser{r: r}
			old.want(200, "POST", "/api/v1/session", `{"token":"`+c.before+`"}`)
			again(c.now)
			status := 401
			if c.in {
				status = 200
			}
			old.want(status, "GET", "/api/v1/status", "")
			if n := len(r.loginList("", "", true)); n != map[bool]int{true: 1}[c.in] {
				t.Errorf("%d logins are listed", n)
			}
			fresh := &browser{r: r}
			fresh.want(200, "POST", "/api/v1/session", `{"token":"`+c.now+`"}`)
			fresh.want(200, "GET", "/api/v1/status", "")
		})
	}
}
