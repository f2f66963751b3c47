package console

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"adit/tunnel/wire"
)

// gated is a relay whose access events arrive when the test says so.
type gated struct {
	*fakeRelay
	open chan struct{}
}

func (g gated) FollowAccess(ctx context.Context, _ Access, give func([]wire.Access, int) error) error {
	if err := give(nil, 0); err != nil {
		return err
	}
	for {
		select {
		case <-g.open:
			if err := give([]wire.Access{fakeVisit}, 0); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// TestLiveEventsEndWithWhoReadsThem checks that nobody continues to see visits after an
// operator has withdrawn that right.
func TestLiveEventsEndWithWhoReadsThem(t *testing.T) {
	for name, end := range map[string]func(owner *browser, token string){
		"a token is deleted": func(owner *browser, token string) {
			owner.want(204, "DELETE", "/api/v1/tokens/"+token, "")
		},
		"an account is locked": func(owner *browser, _ string) {
			owner.want(200, "PATCH", "/api/v1/accounts/bob", `{"disabled":true}`)
		},
		"a browser is signed out": func(owner *browser, _ string) {
			owner.want(200, "PATCH", "/api/v1/accounts/bob", `{"password":"another good one"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := serve(t)
			owner := r.owner()
			owner.want(201, "POST", "/api/v1/accounts", `{"name":"bob","role":"viewer","password":"`+testPass+`"}`)
			made := owner.want(201, "POST", "/api/v1/tokens", `{"name":"siem","scope":"read"}`)
			reader := &browser{r: r}
			if strings.Contains(name, "token") {
				reader.token = made["token"].(string)
			} else {
				reader.want(200, "POST", "/api/v1/session", `{"name":"bob","password":"`+testPass+`"}`)
			}
			open := make(chan struct{})
			r.cfg.Relay = gated{r.relay, open}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/api/v1/access/live", nil)
			if err != nil {
				t.Fatal(err)
			}
			if reader.token != "" {
				req.Header.Set("Authorization", "Bearer "+reader.token)
			} else {
				req.AddCookie(reader.cookie)
			}
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			find := func(text string) bool {
				for lines.Scan() {
					if strings.Contains(lines.Text(), text) {
						return true
					}
				}
				return false
			}
			if !find(": begun") {
				t.Fatalf("the stream did not begin: status %d", resp.StatusCode)
			}
			open <- struct{}{}
			if !find(fakeVisit.Visitor) {
				t.Fatal("the first event did not come")
			}
			end(owner, made["id"].(string))
			open <- struct{}{}
			if find(fakeVisit.Visitor) {
				t.Error("an event came to who may read it no longer")
			}
		})
	}
}

// deaf is a Keeper that removes no login, because the store is unavailable for that, or
// because the login was made at another node and is not known here yet.
type deaf struct{ *memory }

func (d deaf) Remove(ctx context.Context, key string, revision uint64) (bool, error) {
	if strings.HasPrefix(key, loginPrefix) {
		return false, context.DeadlineExceeded
	}
	return d.memory.Remove(ctx, key, revision)
}

// TestLoginDoesNotOutliveItsPassword checks that a login made with an old password of the
// account no longer counts, whether or not the login itself was removed.
func TestLoginDoesNotOutliveItsPassword(t *testing.T) {
	const another = "another good one"
	signIn := func(r *running, password string) *browser {
		b := &browser{r: r}
		b.want(200, "POST", "/api/v1/session", `{"name":"bob","password":"`+password+`"}`)
		return b
	}
	begin := func(t *testing.T) (*running, *browser) {
		r := serve(t)
		owner := r.owner()
		owner.want(201, "POST", "/api/v1/accounts", `{"name":"bob","role":"viewer","password":"`+testPass+`"}`)
		r.cfg.Keeper = deaf{r.keep}
		return r, owner
	}
	t.Run("changed by its owner", func(t *testing.T) {
		r, _ := begin(t)
		own, thief := signIn(r, testPass), signIn(r, testPass)
		own.want(204, "POST", "/api/v1/account/password", `{"password":"`+testPass+`","new_password":"`+another+`"}`)
		thief.want(401, "GET", "/api/v1/clients", "")
		own.want(200, "GET", "/api/v1/clients", "")
		if list := own.want(200, "GET", "/api/v1/logins", "")["items"].([]any); len(list) != 1 {
			t.Errorf("%d logins are listed, want one", len(list))
		}
	})
	t.Run("changed by an administrator", func(t *testing.T) {
		r, owner := begin(t)
		thief := signIn(r, testPass)
		owner.want(200, "PATCH", "/api/v1/accounts/bob", `{"password":"`+another+`"}`)
		thief.want(401, "GET", "/api/v1/clients", "")
		owner.want(200, "PATCH", "/api/v1/accounts/ann", `{"password":"`+another+`"}`)
		owner.want(200, "GET", "/api/v1/clients", "")
	})
	t.Run("of an account that was made anew", func(t *testing.T) {
		r, owner := begin(t)
		thief := signIn(r, testPass)
		owner.want(204, "DELETE", "/api/v1/accounts/bob", "")
		owner.want(201, "POST", "/api/v1/accounts", `{"name":"bob","role":"administrator","password":"`+testPass+`"}`)
		thief.want(401, "GET", "/api/v1/clients", "")
	})
}
