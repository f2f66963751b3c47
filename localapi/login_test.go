package localapi

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const testBearer = "a long enough bearer token"

func (r *running) do(t *testing.T, method, path, body string, header map[string]string) (*http.Response, string) {
	t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, r.url+path, in)
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := plainClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(b)
}

func TestBearerGuardsAllButTheProbeAndThePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	token := strings.ReplaceAll(testBearer, " ", "-")
	if err := os.WriteFile(file, []byte("\ufeff"+token+"\r\n"), 0o600); err != nil { // as PowerShell writes it
		t.Fatal(err)
	}
	r := serve(t, func(c *Config) { c.BearerTokenFile = file })
	for auth, want := range map[string]int{
		"":                          401,
		"Bearer " + token:           200,
		"bearer " + token:           200,
		"Bearer " + token + "x":     401,
		"Bearer " + token[1:]:       401,
		"Bearer ":                   401,
		"Basic " + token:            401,
		token:                       401,
		"Bearer " + token + ", x":   401,
		"Bearer " + token + " evil": 401,
	} {
		header := map[string]string{}
		if auth != "" {
			header["Authorization"] = auth
		}
		for _, path := range []string{"/api/v1/status", "/metrics", "/api/v1/openapi.yaml"} {
			resp, body := r.do(t, "GET", path, "", header)
			if resp.StatusCode != want {
				t.Errorf("%s with %q: got status %d, want %d", path, auth, resp.StatusCode, want)
			}
			if want == 401 && (!strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer") || strings.Contains(body, token)) {
				t.Errorf("%s with %q: got %v and %s", path, auth, resp.Header, body)
			}
		}
	}
	for _, path := range []string{"/healthz", "/", "/login"} {
		if resp, _ := r.do(t, "GET", path, "", nil); resp.StatusCode != 200 {
			t.Errorf("%s without a token: got status %d, want 200", path, resp.StatusCode)
		}
	}
	if resp, _ := r.do(t, "GET", "/api/v1/status?access_token="+token, "", nil); resp.StatusCode != 401 {
		t.Errorf("token in the address: got status %d, want 401", resp.StatusCode)
	}
}

// signIn takes a login link and returns the cookie.
func (r *running) signIn(t *testing.T) (code string, cookie *http.Cookie) {
	t.Helper()
	resp, body := r.do(t, "POST", "/api/v1/login-links", "", map[string]string{"Authorization": "Bearer " + testBearer})
	if resp.StatusCode != 201 {
		t.Fatalf("login link: got status %d: %s", resp.StatusCode, body)
	}
	var link struct{ Data struct{ URL string } }
	if err := json.Unmarshal([]byte(body), &link); err != nil {
		t.Fatal(err)
	}
	page, code, ok := strings.Cut(link.Data.URL, "#")
	if !ok || page != r.url+"/login" {
		t.Fatalf("got link %s, want one to %s/login#…", link.Data.URL, r.url)
	}
	resp, body = r.do(t, "POST", "/api/v1/session", `{"code":"`+code+`"}`, map[string]string{"Origin": r.url, "Sec-Fetch-Site": "same-origin"})
	if resp.StatusCode != 204 || len(resp.Cookies()) != 1 {
		t.Fatalf("sign in: got status %d, cookies %v: %s", resp.StatusCode, resp.Cookies(), body)
	}
	return code, resp.Cookies()[0]
}

func TestLoginLinkSignsOneBrowserInOnce(t *testing.T) {
	r := serve(t, func(c *Config) {
		c.BearerToken = testBearer
		c.AllowedOrigins = []string{"https://console.example"}
	})
	code, cookie := r.signIn(t)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("got cookie %+v, want HttpOnly, SameSite=Strict, of this host alone", cookie)
	}
	if strings.Contains(cookie.Value, testBearer) {
		t.Error("the cookie holds the Bearer token")
	}
	if resp, _ := r.do(t, "POST", "/api/v1/session", `{"code":"`+code+`"}`, nil); resp.StatusCode != 401 {
		t.Errorf("the same link again: got status %d, want 401", resp.StatusCode)
	}
	with := func(more ...string) map[string]string {
		h := map[string]string{"Cookie": cookie.Name + "=" + cookie.Value}
		for i := 0; i < len(more); i += 2 {
			h[more[i]] = more[i+1]
		}
		return h
	}
	forged := cookie.Value[:len(cookie.Value)-2] + "AA"
	if forged == cookie.Value { // as one in a thousand ends
		forged = cookie.Value[:len(cookie.Value)-2] + "BA"
	}
	for _, c := range []struct {
		name   string
		header map[string]string
		want   int
	}{
		{"own page", with("Sec-Fetch-Site", "same-origin"), 200},
		{"own page of an old browser", with(), 200},
		{"page on another port", with("Sec-Fetch-Site", "same-site"), 403},
		{"allowed console", with("Sec-Fetch-Site", "cross-site", "Origin", "https://console.example"), 401},
		{"allowed console of an old browser", with("Origin", "https://console.example"), 401},
		{"forged", map[string]string{"Cookie": cookie.Name + "=" + forged}, 401},
		{"empty", map[string]string{"Cookie": cookie.Name + "="}, 401},
		{"wrong token beside it", with("Authorization", "Bearer wrong"), 401},
	} {
		if resp, body := r.do(t, "GET", "/api/v1/status", "", c.header); resp.StatusCode != c.want {
			t.Errorf("%s: got status %d, want %d; %s", c.name, resp.StatusCode, c.want, body)
		}
	}
	again := serve(t, func(c *Config) { c.BearerToken = testBearer })
	if resp, _ := again.do(t, "GET", "/api/v1/status", "", with()); resp.StatusCode != 200 {
		t.Errorf("after the daemon's restart: got status %d, want 200", resp.StatusCode)
	}
	other := serve(t, func(c *Config) { c.BearerToken = "another long bearer token" })
	if resp, _ := other.do(t, "GET", "/api/v1/status", "", with()); resp.StatusCode != 401 {
		t.Errorf("after the token's change: got status %d, want 401", resp.StatusCode)
	}
	if resp, _ := r.do(t, "DELETE", "/api/v1/session", "", with()); resp.StatusCode != 204 {
		t.Errorf("sign out: got status %d, want 204", resp.StatusCode)
	}
	if resp, _ := r.do(t, "GET", "/api/v1/status", "", with()); resp.StatusCode != 401 {
		t.Errorf("after signing out: got status %d, want 401", resp.StatusCode)
	}
}

func TestLoginLinkWithoutProtectionIsThePage(t *testing.T) {
	r := serve(t, nil)
	_, body := r.do(t, "POST", "/api/v1/login-links", "", nil)
	if want := `{"data":{"url":"` + r.url + `/","expires_at":null}}`; strings.TrimSpace(body) != want {
		t.Errorf("got %s, want %s", body, want)
	}
}

func TestLoginCodesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLogins(testBearer)
		code, _ := l.newCode(time.Now())
		time.Sleep(codeLifetime)
		if _, ok := l.redeem(code, time.Now()); ok {
			t.Error("a code was taken after its end")
		}
		first, _ := l.newCode(time.Now())
		for range maxCodes {
			time.Sleep(time.Millisecond)
			l.newCode(time.Now())
		}
		if len(l.codes) > maxCodes {
			t.Errorf("got %d codes, want at most %d", len(l.codes), maxCodes)
		}
		if _, ok := l.redeem(first, time.Now()); ok {
			t.Error("the oldest of too many codes is still good")
		}
		time.Sleep(codeLifetime)
		code, _ = l.newCode(time.Now())
		other, _ := l.newCode(time.Now())
		if len(l.codes) != 2 {
			t.Errorf("got %d codes when all but two have ended", len(l.codes))
		}
		if _, ok := l.redeem(other, time.Now()); !ok {
			t.Error("the newer of two codes was refused")
		}
		cookie, ok := l.redeem(code, time.Now())
		if !ok {
			t.Fatal("the older of two codes was refused")
		}
		time.Sleep(sessionLife)
		if _, ok := l.session(cookie); ok {
			t.Error("a session outlived its time")
		}
	})
}

// TestForgedCookiesSignNobodyIn changes each byte of a cookie: the end of its session, who
// it is of, and the seal of both.
func TestForgedCookiesSignNobodyIn(t *testing.T) {
	l := newLogins(testBearer)
	good := signedIn(t, l)
	if _, ok := l.session(good); !ok {
		t.Fatal("the cookie is refused")
	}
	b, err := base64.RawURLEncoding.DecodeString(good)
	if err != nil {
		t.Fatal(err)
	}
	for i := range b {
		forged := bytes.Clone(b)
		forged[i] ^= 1
		if _, ok := l.session(base64.RawURLEncoding.EncodeToString(forged)); ok {
			t.Errorf("the cookie is taken with another byte %d of %d", i, len(b))
		}
		if _, ok := l.session(base64.RawURLEncoding.EncodeToString(b[:i])); ok {
			t.Errorf("%d bytes of the cookie's %d are taken", i, len(b))
		}
	}
	if _, ok := newLogins(testBearer + "x").session(good); ok {
		t.Error("it is taken where the token is another")
	}
}

func FuzzSessionCookie(f *testing.F) {
	l := newLogins(rand.Text()) // each fuzzing process has a key of its own
	code, _ := l.newCode(time.Now())
	good, _ := l.redeem(code, time.Now())
	f.Add(good)
	f.Add("")
	f.Add("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, cookie string) {
		if _, ok := l.session(cookie); ok && cookie != good {
			t.Fatalf("a forged cookie was taken: %q", cookie)
		}
	})
}
