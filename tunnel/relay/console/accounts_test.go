package console

import (
	"context"
	"encoding/base32"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"adit/internal/guess"
	"adit/tunnel/relay/audit"
)

func auditActor(ctx context.Context) audit.Actor { return audit.ActorOf(ctx) }

func TestSetupMakesOneAdministratorOnce(t *testing.T) {
	r := serve(t)
	b := &browser{r: r}
	if s := b.want(200, "GET", "/api/v1/session", ""); s["setup_needed"] != true || s["signed_in"] != false {
		t.Errorf("before: %v", s)
	}
	if e := b.want(401, "POST", "/api/v1/setup", `{"code":"AAAA","name":"ann","password":"`+testPass+`"}`); e["code"] != "wrong_code" {
		t.Errorf("wrong code: %v", e)
	}
	if e := b.want(400, "POST", "/api/v1/setup", `{"code":"`+testCode+`","name":"ann","password":"short"}`); e["field"] != "password" {
		t.Errorf("short password: %v", e)
	}
	if s := b.want(200, "POST", "/api/v1/setup", `{"code":"aaaa bbbb ccccdddd","name":"ann","password":"`+testPass+`"}`); s["account"] != "ann" || s["role"] != "administrator" {
		t.Errorf("set up: %v", s)
	}
	if !b.cookie.HttpOnly || b.cookie.SameSite != http.SameSiteStrictMode || b.cookie.Secure {
		t.Errorf("cookie: %+v", b.cookie)
	}
	if s := b.want(200, "GET", "/api/v1/session", ""); s["setup_needed"] != false || s["account"] != "ann" {
		t.Errorf("after: %v", s)
	}
	(&browser{r: r}).want(409, "POST", "/api/v1/setup", `{"code":"`+testCode+`","name":"eve","password":"`+testPass+`"}`)
	for _, v := range r.keep.List("") {
		if strings.Contains(string(v), testPass) || strings.Contains(string(v), b.cookie.Value) {
			t.Errorf("a secret is kept: %s", v)
		}
	}
}

func TestOneSetupOfManyAtOnceWorks(t *testing.T) {
	r := serve(t)
	var done atomic.Int32
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			resp, _ := (&browser{r: r}).send("POST", "/api/v1/setup", fmt.Sprintf(`{"code":"%s","name":"a%d","password":"%s"}`, testCode, i, testPass))
			if resp.StatusCode == 200 {
				done.Add(1)
			}
		})
	}
	all.Wait()
	if done.Load() != 1 || len(r.accounts()) != 1 {
		t.Errorf("got %d set-ups and %d accounts, want one", done.Load(), len(r.accounts()))
	}
}

func TestCookieIsSecureBehindTLS(t *testing.T) {
	r := serve(t)
	b := &browser{r: r, header: http.Header{"X-Forwarded-Proto": {"https"}}}
	b.want(200, "POST", "/api/v1/session", `{"token":"`+testToken+`"}`)
	if !b.cookie.Secure || b.cookie.Path != "/" || b.cookie.Domain != "" || b.cookie.Name != "__Host-adit_console" {
		t.Errorf("the cookie may go over plain HTTP, or come from a neighbour: %+v", b.cookie)
	}
	b.want(200, "GET", "/api/v1/status", "")
	out, _ := b.send("DELETE", "/api/v1/session", "")
	if c := out.Cookies(); len(c) != 1 || c[0].Name != "__Host-adit_console" || !c[0].Secure || c[0].MaxAge >= 0 {
		t.Errorf("signed out with %v, want the cookie forgotten", c)
	}
}

// A page of a neighbouring name can set a cookie for this one, but none with the prefix.
// So over TLS no other cookie counts, even if it belongs to a valid login.
func TestCookieWithoutPrefixCountsOnPlainHTTPOnly(t *testing.T) {
	r := serve(t)
	plain := &browser{r: r}
	plain.want(200, "POST", "/api/v1/session", `{"token":"`+testToken+`"}`)
	plain.want(200, "GET", "/api/v1/status", "")
	behind := &browser{r: r, cookie: plain.cookie, header: http.Header{"X-Forwarded-Proto": {"https"}}}
	behind.want(401, "GET", "/api/v1/status", "")
	if s := behind.want(200, "GET", "/api/v1/session", ""); s["signed_in"] != false {
		t.Errorf("a browser with the cookie of before: %v, want to be asked to sign in", s)
	}
	behind.want(200, "POST", "/api/v1/session", `{"token":"`+testToken+`"}`)
	behind.want(200, "GET", "/api/v1/status", "")
}

func TestCookieCountsForTheConsolesOwnPageOnly(t *testing.T) {
	b := serve(t).owner()
	b.want(200, "GET", "/api/v1/status", "")
	b.header = http.Header{"Sec-Fetch-Site": {"same-site"}}
	b.want(401, "GET", "/api/v1/status", "")
	b.want(403, "POST", "/api/v1/clients", `{"name":"a"}`)
	b.header = http.Header{"Sec-Fetch-Site": {"cross-site"}}
	b.want(403, "GET", "/api/v1/status", "")
	b.header = http.Header{"Origin": {"https://evil.example"}}
	b.want(403, "POST", "/api/v1/clients", `{"name":"a"}`)
	b.header = http.Header{"Sec-Fetch-Site": {"same-origin"}}
	b.want(201, "POST", "/api/v1/clients", `{"name":"a"}`)
}

// roles returns an owner, a viewer, and a function that creates tokens with a scope.
func (r *running) roles() (owner, viewer *browser, token func(name, scope string) *browser) {
	owner, viewer = r.owner(), &browser{r: r}
	owner.want(201, "POST", "/api/v1/accounts", `{"name":"vic","role":"viewer","password":"`+testPass+`"}`)
	viewer.want(200, "POST", "/api/v1/session", `{"name":"vic","password":"`+testPass+`"}`)
	return owner, viewer, func(name, scope string) *browser {
		v := owner.want(201, "POST", "/api/v1/tokens", `{"name":"`+name+`","scope":"`+scope+`"}`)
		return &browser{r: r, token: v["token"].(string)}
	}
}

func TestRolesAndScopes(t *testing.T) {
	r := serve(t)
	owner, viewer, token := r.roles()
	reader, writer := token("ci-read", "read"), token("ci-write", "write")
	admin := &browser{r: r, token: testToken}
	type answers [5]int // owner, admin token, viewer, read, write
	for _, c := range []struct {
		method, path, body string
		want               answers
	}{
		{"GET", "/api/v1/status", "", answers{200, 200, 200, 200, 200}},
		{"GET", "/api/v1/figures", "", answers{200, 200, 200, 200, 200}},
		{"GET", "/metrics", "", answers{200, 200, 200, 200, 200}},
		{"GET", "/api/v1/clients", "", answers{200, 200, 200, 200, 200}},
		{"POST", "/api/v1/policies/shop/explain", `{"address":"1.2.3.4"}`, answers{200, 200, 200, 200, 200}},
		{"POST", "/api/v1/clients", `{"name":"x"}`, answers{201, 201, 403, 403, 201}},
		{"POST", "/api/v1/clients/x/rotate", "", answers{200, 200, 403, 403, 200}},
		{"PUT", "/api/v1/policies/shop", `{}`, answers{200, 200, 403, 403, 200}},
		{"DELETE", "/api/v1/policies/shop", "", answers{204, 204, 403, 403, 204}},
		{"GET", "/api/v1/backup", "", answers{200, 200, 403, 403, 403}},
		{"GET", "/api/v1/accounts", "", answers{200, 200, 403, 403, 403}},
		{"GET", "/api/v1/tokens", "", answers{200, 200, 403, 403, 403}},
		{"POST", "/api/v1/tokens", `{"name":"y","scope":"bad"}`, answers{400, 400, 403, 403, 403}},
		{"GET", "/api/v1/logins", "", answers{200, 403, 200, 403, 403}},
		{"POST", "/api/v1/account/password", `{}`, answers{400, 403, 400, 403, 403}},
	} {
		for i, b := range []*browser{owner, admin, viewer, reader, writer} {
			if resp, body := b.send(c.method, c.path, c.body); resp.StatusCode != c.want[i] {
				t.Errorf("%s %s by %d: got status %d, want %d: %s", c.method, c.path, i, resp.StatusCode, c.want[i], body)
			}
		}
	}
}

// TestExplanationsAreNoWayToGuessPasswords checks this for those who may only read.
func TestExplanationsAreNoWayToGuessPasswords(t *testing.T) {
	r := serve(t)
	owner, viewer, token := r.roles()
	reader := token("ci-read", "read")
	ask := func(b *browser, password string, want int) {
		t.Helper()
		b.want(want, "POST", "/api/v1/policies/shop/explain", `{"address":"1.2.3.4","user":"ann","password":"`+password+`"}`)
	}
	for range 2 * guess.AtOnce {
		ask(viewer, testPass, 200) // which is right
		ask(owner, "a wrong one", 200)
	}
	for range guess.AtOnce {
		ask(viewer, "a wrong one", 200)
	}
	ask(viewer, testPass, 429)
	viewer.want(200, "POST", "/api/v1/policies/shop/explain", `{"address":"1.2.3.4"}`)
	ask(reader, testPass, 200)
}

// TestOnlyWhoMayChangeASinkSeesItsKey covers receivers that have their key in the path or
// the query of a webhook's URL.
func TestOnlyWhoMayChangeASinkSeesItsKey(t *testing.T) {
	r := serve(t)
	owner, viewer, token := r.roles()
	const whole, bare = "https://siem.example/in?key=s3cret", "https://siem.example/…"
	for _, c := range []struct {
		name string
		who  *browser
		want string
	}{
		{"an administrator", owner, whole},
		{"the admin token", &browser{r: r, token: testToken}, whole},
		{"a token that may write", token("ci-write", "write"), whole},
		{"a viewer", viewer, bare},
		{"a token that may read", token("ci-read", "read"), bare},
	} {
		for _, path := range []string{"/api/v1/sinks", "/api/v1/sinks/siem"} {
			resp, body := c.who.send("GET", path, "")
			if resp.StatusCode != 200 || !strings.Contains(string(body), `"url":"`+c.want+`"`) {
				t.Errorf("%s, %s: got status %d, %s, want the URL %s", c.name, path, resp.StatusCode, body, c.want)
			}
		}
	}
}

func TestAPITokenIsShownOnceAndEnds(t *testing.T) {
	r := serve(t)
	owner := r.owner()
	made := owner.want(201, "POST", "/api/v1/tokens", `{"name":"ci","scope":"read","expires_at":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`)
	secret := made["token"].(string)
	for key, v := range r.keep.List("") {
		if strings.Contains(key+string(v), secret) {
			t.Errorf("the token is kept: %s %s", key, v)
		}
	}
	if _, body := owner.send("GET", "/api/v1/tokens", ""); strings.Contains(string(body), secret) || !strings.Contains(string(body), `"created_by":"ann"`) {
		t.Errorf("list: %s", body)
	}
	ci := &browser{r: r, token: secret}
	ci.want(200, "GET", "/api/v1/status", "")
	owner.want(400, "POST", "/api/v1/tokens", `{"name":"ci","scope":"read"}`)
	owner.want(400, "POST", "/api/v1/tokens", `{"name":"old","scope":"read","expires_at":"2020-01-01T00:00:00Z"}`)
	owner.want(204, "DELETE", "/api/v1/tokens/"+made["id"].(string), "")
	owner.want(404, "DELETE", "/api/v1/tokens/"+made["id"].(string), "")
	ci.want(401, "GET", "/api/v1/status", "")
}

// code returns a code of the app for an enrolment, some steps from now.
func code(t *testing.T, secret string, steps int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	return totpCode(key, time.Now().Unix()/totpStep+steps)
}

func TestSecondFactor(t *testing.T) {
	r := serve(t)
	owner := r.owner()
	other := &browser{r: r}
	login := func(code string) string {
		return `{"name":"ann","password":"` + testPass + `","code":"` + code + `"}`
	}
	other.want(200, "POST", "/api/v1/session", login(""))
	owner.want(400, "POST", "/api/v1/account/totp", `{"password":"wrong wrong wrong"}`)
	e := owner.want(200, "POST", "/api/v1/account/totp", `{"password":"`+testPass+`"}`)
	secret := e["secret"].(string)
	u, err := url.Parse(e["uri"].(string))
	if err != nil || u.Scheme != "otpauth" || u.Host != "totp" || u.Path != "/adit relay.test:ann" || u.Query().Get("secret") != secret || u.Query().Get("issuer") != "adit relay.test" {
		t.Errorf("uri %s, %v", e["uri"], err)
	}
	// Until it is confirmed, it is not asked for.
	other.want(200, "POST", "/api/v1/session", login(""))
	owner.want(400, "PUT", "/api/v1/account/totp", `{"code":"000000"}`)
	// The next step may begin before the code is looked at.
	recovery := owner.want(200, "PUT", "/api/v1/account/totp", `{"code":"`+code(t, secret, 0)+`"}`)["recovery_codes"].([]any)
	if len(recovery) != recoveryCodes {
		t.Fatalf("got %d recovery codes", len(recovery))
	}
	other.want(401, "GET", "/api/v1/status", "")
	if e := other.want(401, "POST", "/api/v1/session", login("")); e["code"] != "code_required" {
		t.Errorf("without a code: %v", e)
	}
	if e := other.want(401, "POST", "/api/v1/session", login("123")); e["code"] != "wrong_code" {
		t.Errorf("wrong code: %v", e)
	}
	now := code(t, secret, 1)
	other.want(200, "POST", "/api/v1/session", login(now))
	other.want(401, "POST", "/api/v1/session", login(now)) // a code works once
	text := strings.ToUpper(recovery[3].(string))
	other.want(200, "POST", "/api/v1/session", login(text))
	other.want(401, "POST", "/api/v1/session", login(text))
	if _, body := owner.send("GET", "/api/v1/accounts", ""); !strings.Contains(string(body), `"recovery_code_count":9`) || strings.Contains(string(body), secret) {
		t.Errorf("accounts: %s", body)
	}
	// An administrator takes a lost factor away; its owner's logins end.
	(&browser{r: r, token: testToken}).want(200, "PATCH", "/api/v1/accounts/ann", `{"totp":false}`)
	owner.want(401, "GET", "/api/v1/status", "")
	other.want(200, "POST", "/api/v1/session", login(""))
}

// RFC 6238 appendix B, SHA-1, truncated to six digits.
func TestTOTPOfTheStandard(t *testing.T) {
	key := []byte("12345678901234567890")
	for at, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037", 20000000000: "353130"} {
		if got := totpCode(key, at/totpStep); got != want {
			t.Errorf("at %d: got %s, want %s", at, got, want)
		}
		secret := base32Plain.EncodeToString(key)
		for _, skew := range []int64{-30, 0, 30} {
			if _, ok := checkTOTP(secret, want, time.Unix(at+skew, 0), 0); !ok {
				t.Errorf("at %d, %d s off: refused", at, skew)
			}
		}
		if _, ok := checkTOTP(secret, want, time.Unix(at+90, 0), 0); ok {
			t.Errorf("at %d: accepted 90 s late", at)
		}
		if _, ok := checkTOTP(secret, want, time.Unix(at, 0), at/totpStep); ok {
			t.Errorf("at %d: accepted twice", at)
		}
	}
}

func TestGuessesAreSlowedDown(t *testing.T) {
	r := serve(t)
	r.owner()
	b := &browser{r: r}
	last := 0
	for range guess.AtOnce + 3 {
		resp, _ := b.send("POST", "/api/v1/session", `{"name":"ann","password":"guess guess"}`)
		last = resp.StatusCode
	}
	if last != http.StatusTooManyRequests {
		t.Errorf("after many guesses: status %d", last)
	}
	// From here not even what is right: who guesses must not learn that it was.
	b.want(429, "POST", "/api/v1/session", `{"name":"ann","password":"`+testPass+`"}`)
}

func TestAddressesAreCountedByNetwork(t *testing.T) {
	for addr, want := range map[string]string{"192.0.2.1:5": "192.0.2.1/32", "[::ffff:192.0.2.1]:5": "192.0.2.1/32", "[2001:db8:1:2:3::4]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64"} {
		if got := addressKey(&http.Request{RemoteAddr: addr}); got != want {
			t.Errorf("%s: got %s, want %s", addr, got, want)
		}
	}
}

func TestAccountsChange(t *testing.T) {
	r := serve(t)
	owner := r.owner()
	for _, c := range []struct {
		status             int
		method, path, body string
	}{
		{400, "POST", "/api/v1/accounts", `{"name":"Bob","role":"viewer","password":"` + testPass + `"}`},
		{400, "POST", "/api/v1/accounts", `{"name":"bob","role":"king","password":"` + testPass + `"}`},
		{400, "POST", "/api/v1/accounts", `{"name":"bob","role":"viewer","password":"aaaaaaaaaaaaaa"}`},
		{400, "POST", "/api/v1/accounts", `{"name":"bob","role":"viewer","password":"` + strings.Repeat("ab", 200) + `"}`},
		{201, "POST", "/api/v1/accounts", `{"name":"bob","role":"viewer","password":"` + testPass + `"}`},
		{400, "POST", "/api/v1/accounts", `{"name":"bob","role":"viewer","password":"` + testPass + `"}`},
		{400, "PATCH", "/api/v1/accounts/ann", `{"role":"viewer"}`}, // the last administrator
		{400, "PATCH", "/api/v1/accounts/ann", `{"disabled":true}`},
		{400, "DELETE", "/api/v1/accounts/ann", ``},
		{400, "PATCH", "/api/v1/accounts/bob", `{"totp":true}`},
		{200, "PATCH", "/api/v1/accounts/bob", `{"role":"administrator"}`},
		{404, "PATCH", "/api/v1/accounts/zoe", `{"role":"viewer"}`},
		{404, "DELETE", "/api/v1/accounts/zoe", ``},
	} {
		owner.want(c.status, c.method, c.path, c.body)
	}
	bob := &browser{r: r}
	bob.want(200, "POST", "/api/v1/session", `{"name":"bob","password":"`+testPass+`"}`)
	bob.want(200, "PATCH", "/api/v1/accounts/ann", `{"role":"viewer"}`)
	owner.want(403, "GET", "/api/v1/accounts", "") // at once
	bob.want(200, "PATCH", "/api/v1/accounts/ann", `{"disabled":true}`)
	owner.want(401, "GET", "/api/v1/status", "")
	owner.want(401, "POST", "/api/v1/session", `{"name":"ann","password":"`+testPass+`"}`)
	bob.want(204, "DELETE", "/api/v1/accounts/ann", "")

	bob.want(400, "POST", "/api/v1/account/password", `{"password":"wrong wrong wrong","new_password":"another one entirely"}`)
	if e := bob.want(400, "POST", "/api/v1/account/password", `{"password":"`+testPass+`","new_password":"short"}`); e["field"] != "new_password" {
		t.Errorf("short password: %v", e)
	}
	second := &browser{r: r}
	second.want(200, "POST", "/api/v1/session", `{"name":"bob","password":"`+testPass+`"}`)
	bob.want(204, "POST", "/api/v1/account/password", `{"password":"`+testPass+`","new_password":"another one entirely"}`)
	bob.want(200, "GET", "/api/v1/status", "")
	second.want(401, "GET", "/api/v1/status", "")

	want := []string{"user.add ann by user ann", "user.add bob by user ann", "user.set bob by user ann", "user.delete ann by user bob", "login.refused ann by user "}
	for _, w := range want {
		if !slices.Contains(r.relay.noted, w) {
			t.Errorf("the audit log has no %q, but %q", w, r.relay.noted)
		}
	}
}

func TestLoginsAreListedAndEnded(t *testing.T) {
	r := serve(t)
	owner := r.owner()
	other := &browser{r: r, header: http.Header{"User-Agent": {"Lynx/2"}}}
	other.want(200, "POST", "/api/v1/session", `{"name":"ann","password":"`+testPass+`"}`)
	list := owner.want(200, "GET", "/api/v1/logins", "")["items"].([]any)
	if len(list) != 2 {
		t.Fatalf("got %d logins, want 2", len(list))
	}
	for _, l := range list {
		l := l.(map[string]any)
		if l["browser"] == "Lynx/2" {
			owner.want(204, "DELETE", "/api/v1/logins/"+l["id"].(string), "")
			owner.want(404, "DELETE", "/api/v1/logins/"+l["id"].(string), "")
		} else if l["current"] != true {
			t.Errorf("not current: %v", l)
		}
	}
	other.want(401, "GET", "/api/v1/status", "")
	owner.want(204, "DELETE", "/api/v1/session", "")
	owner.cookie = nil
	owner.want(401, "GET", "/api/v1/status", "")
}

func TestFiguresComeFromDifferences(t *testing.T) {
	relay := &fakeRelay{counters: Counters{Open: 2}}
	h := history{}
	at := fakeTime
	for i := range 3 * coarseOf {
		relay.counters.Visits += 20
		relay.counters.Refused += 10
		relay.counters.Bytes.In += 1000
		if i == 7 {
			relay.counters.Bytes.Out, relay.counters.Open = 500, 1
		}
		h.sample(at, relay)
		at = at.Add(fineStep)
	}
	fine, day := h.figures(false), h.figures(true)
	if len(fine.Items) != 3*coarseOf-1 || len(day.Items) != 2 || fine.Step != 10 || day.Step != 300 {
		t.Fatalf("got %d and %d figures", len(fine.Items), len(day.Items))
	}
	if f := fine.Items[0]; f.Visits != 2 || f.Refused != 1 || f.BytesIn != 100 || f.Connections != 2 || f.Sessions != 3 {
		t.Errorf("first: %+v", f)
	}
	if f := fine.Items[6]; f.BytesIn != 100 || f.BytesOut != 50 || f.Connections != 1 {
		t.Errorf("the eighth sample: %+v", f)
	}
	if f := day.Items[1]; f.Visits < 1.99 || f.Visits > 2.01 {
		t.Errorf("mean: %+v", f)
	}
	for range 2 * fineKept {
		h.sample(at, relay)
		at = at.Add(fineStep)
	}
	if n := len(h.figures(false).Items); n != fineKept {
		t.Errorf("kept %d, want %d", n, fineKept)
	}
}
