package identitytest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// GitHub is a stand-in for a GitHub Enterprise Server, as far as its documentation describes
// OAuth's web application flow and the API for one's own account. Whoever is sent to it is the
// account set by Be, and is sent back at once.
type GitHub struct {
	*httptest.Server

	mu       sync.Mutex
	callback string
	account  Account
	codes    map[string]url.Values // what was asked for, by code
	tokens   map[string]string     // scopes
	answers  map[string]http.HandlerFunc
	asked    []string
	noPKCE   bool
}

// Account is somebody at GitHub.
type Account struct {
	ID     int64
	Login  string
	Emails []Email
	Orgs   []string // as org
	Teams  []string // as org/team
}

// Email is an email address of an account.
type Email struct {
	Email    string `json:"email"`
	Verified bool   `json:"verified"`
	Primary  bool   `json:"primary"`
}

// StartGitHub runs a stand-in until the test ends. callback is where it may send people back to.
func StartGitHub(tb testing.TB, callback string) *GitHub {
	tb.Helper()
	g := &GitHub{callback: callback, codes: map[string]url.Values{}, tokens: map[string]string{}, answers: map[string]http.HandlerFunc{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /login/oauth/authorize", g.authorize)
	mux.HandleFunc("POST /login/oauth/access_token", g.swap)
	mux.HandleFunc("GET /api/v3/user", g.api("", func(a Account) any {
		return map[string]any{"id": a.ID, "login": a.Login, "name": "No One", "email": "public@example.com"}
	}))
	mux.HandleFunc("GET /api/v3/user/emails", g.api("user:email", func(a Account) any { return anyOf(a.Emails, func(e Email) any { return e }) }))
	mux.HandleFunc("GET /api/v3/user/orgs", g.api("read:org", func(a Account) any {
		return anyOf(a.Orgs, func(name string) any { return map[string]any{"login": name, "id": 1} })
	}))
	mux.HandleFunc("GET /api/v3/user/teams", g.api("read:org", func(a Account) any {
		return anyOf(a.Teams, func(name string) any {
			org, team, _ := strings.Cut(name, "/")
			return map[string]any{"name": "Team " + team, "slug": team, "organization": map[string]any{"login": org}}
		})
	}))
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		answer := g.answers[r.URL.Path]
		g.asked = append(g.asked, r.URL.Path)
		g.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	tb.Cleanup(g.Close)
	return g
}

// Be makes all further visitors the given account.
func (g *GitHub) Be(a Account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.account = a
}

// Answer overrides the response for a path from now on; nil restores the normal one.
func (g *GitHub) Answer(path string, by http.HandlerFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.answers[path] = by
}

// ForgetPKCE makes the server behave as if it knew nothing of PKCE, as versions before July 2025.
func (g *GitHub) ForgetPKCE() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noPKCE = true
}

// Asked returns the paths that were requested since its last call.
func (g *GitHub) Asked() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.asked
	g.asked = nil
	return asked
}

func anyOf[T any](list []T, f func(T) any) []any {
	all := []any{}
	for _, v := range list {
		all = append(all, f(v))
	}
	return all
}

func (g *GitHub) authorize(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := r.URL.Query()
	if q.Get("client_id") != ClientID || q.Get("redirect_uri") != g.callback || q.Get("code_challenge_method") != "S256" {
		http.Error(w, "no such application", http.StatusNotFound)
		return
	}
	code := rand.Text()
	g.codes[code] = q
	http.Redirect(w, r, g.callback+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (g *GitHub) swap(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	begun := g.codes[r.PostFormValue("code")]
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	said := url.Values{}
	switch {
	case r.PostFormValue("client_id") != ClientID || r.PostFormValue("client_secret") != ClientSecret:
		said.Set("error", "incorrect_client_credentials")
	case begun == nil || !g.noPKCE && begun.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]):
		said.Set("error", "bad_verification_code")
	case r.PostFormValue("redirect_uri") != begun.Get("redirect_uri"):
		said.Set("error", "redirect_uri_mismatch")
	default:
		delete(g.codes, r.PostFormValue("code"))
		token := "gho_" + rand.Text()
		g.tokens[token] = begun.Get("scope")
		said = url.Values{"access_token": {token}, "token_type": {"bearer"}, "scope": {strings.ReplaceAll(begun.Get("scope"), " ", ",")}}
	}
	w.Header().Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	w.Write([]byte(said.Encode())) // faults, too, with the status 200
}

// api answers with what an account has, a page of a list at a time, to who has a
// token with a scope.
func (g *GitHub) api(scope string, of func(Account) any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		scopes, known := g.tokens[token]
		switch {
		case !bearer || !known || r.Header.Get("User-Agent") == "":
			http.Error(w, `{"message":"Bad credentials"}`, http.StatusUnauthorized)
			return
		case scope != "" && !slices.Contains(strings.Fields(scopes), scope):
			http.Error(w, `{"message":"Forbidden"}`, http.StatusForbidden)
			return
		}
		value := of(g.account)
		if list, ok := value.([]any); ok {
			each, page := number(r, "per_page", 30), number(r, "page", 1)
			value = list[min(len(list), (page-1)*each):min(len(list), page*each)]
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		json.NewEncoder(w).Encode(value)
	}
}

// number is a positive number of a query, at most 100 as GitHub's of a page.
func number(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return otherwise
	}
	return min(n, 100)
}
