package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"adit/tunnel/relay/policy"
)

// GitHubURL is GitHub's own site.
const GitHubURL = "https://github.com"

const (
	gitHubFor     = 20 * time.Second // limit on all requests for one visitor
	gitHubPage    = 100              // items per answer of a list
	gitHubPages   = 10               // answers to read of a list
	gitHubVersion = "2022-11-28"     // of the API
)

// gitHubLogin matches GitHub's user names, with an underscore and a suffix for those
// managed by a company.
var gitHubLogin = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// gitHub is a provider that uses GitHub's OAuth 2. Since that has no signed identity, the
// API is asked who a visitor is, with a token that is not stored.
type gitHub struct {
	Provider
	api    string // URL, without a trailing slash
	client *http.Client

	mu    sync.Mutex
	asked time.Time
	err   error // of the last time
}

func newGitHub(p Provider, client *http.Client) *gitHub {
	// Requests with the token or the secret must not be redirected elsewhere.
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &gitHub{Provider: p, api: gitHubAPI(p.Issuer), client: client}
}

// gitHubAPI returns the URL of the API for a site: GitHub itself, one with data
// residency, or a GitHub Enterprise Server.
func gitHubAPI(site string) string {
	u, err := url.Parse(site)
	if err == nil && (u.Host == "github.com" || strings.HasSuffix(u.Host, ".ghe.com")) {
		return "https://api." + u.Host
	}
	return site + "/api/v3"
}

func (g *gitHub) issued(issuer string) bool {
	return issuer == g.Issuer || strings.HasPrefix(issuer, g.Issuer+"/")
}

func (g *gitHub) lastAsked() (at time.Time, fault string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err == nil {
		return g.asked, ""
	}
	return g.asked, g.err.Error()
}

// config requests no more than the policy needs: organisations and teams only if it names
// groups.
func (g *gitHub) config(t trip) *oauth2.Config {
	scopes := []string{"user:email"}
	if len(t.wants.Groups) > 0 {
		scopes = append(scopes, "read:org")
	}
	return &oauth2.Config{
		ClientID: g.ClientID, ClientSecret: g.ClientSecret, RedirectURL: t.callback, Scopes: scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL: g.Issuer + "/login/oauth/authorize", TokenURL: g.Issuer + "/login/oauth/access_token", AuthStyle: oauth2.AuthStyleInParams,
		},
	}
}

func (g *gitHub) authorize(_ context.Context, t trip, sealed string) (string, error) {
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(t.secrets.verifier)}
	if t.other {
		options = append(options, oauth2.SetAuthURLParam("prompt", "select_account"))
	}
	return g.config(t).AuthCodeURL(sealed, options...), nil
}

func (g *gitHub) swap(ctx context.Context, t trip, code string) (*policy.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, gitHubFor)
	defer cancel()
	token, err := g.config(t).Exchange(context.WithValue(ctx, oauth2.HTTPClient, g.client), code, oauth2.VerifierOption(t.secrets.verifier))
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode == "bad_verification_code" {
		_ = g.note(ctx, nil) // the fault lies with whoever brought the code
		return nil, errors.New("swap the code: GitHub does not know it, or it is of another browser's sign-in")
	}
	if err != nil {
		return nil, g.note(ctx, fmt.Errorf("swap the code: %w", cutShort(err)))
	}
	who, err := g.identity(ctx, token.AccessToken, t.wants)
	return who, g.note(ctx, err)
}

// note records the result of asking GitHub, for the operator. If the visitor has left,
// the result means nothing.
func (g *gitHub) note(ctx context.Context, err error) error {
	if err == nil || !errors.Is(ctx.Err(), context.Canceled) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.asked, g.err = time.Now(), err
	}
	return err
}

// identity returns whose token it is.
func (g *gitHub) identity(ctx context.Context, token string, wants *policy.SignIn) (*policy.Identity, error) {
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	}
	if err := g.get(ctx, token, "/user", &user); err != nil {
		return nil, err
	}
	if user.ID <= 0 || !gitHubLogin.MatchString(user.Login) {
		return nil, errors.New("read /user: it names nobody")
	}
	// Logins may change hands; numbers do not.
	who := &policy.Identity{Subject: strconv.FormatInt(user.ID, 10), Name: user.Login}
	if err := g.emails(ctx, token, who); err != nil {
		return nil, err
	}
	return who, g.groups(ctx, token, wants.Groups, who)
}

// emails adds the verified addresses to who.
func (g *gitHub) emails(ctx context.Context, token string, who *policy.Identity) error {
	list, err := gitHubList[struct {
		Email    string `json:"email"`
		Verified bool   `json:"verified"`
		Primary  bool   `json:"primary"`
	}](ctx, g, token, "/user/emails")
	for _, e := range list {
		switch {
		case !e.Verified || e.Email == "" || len(e.Email) > maxEmail:
		case e.Primary:
			who.Email = policy.LowerEmail(e.Email)
		default:
			who.Emails = append(who.Emails, policy.LowerEmail(e.Email))
		}
	}
	return err
}

// groups adds organisations, as org, and teams, as org/team, to who, if any are wanted.
func (g *gitHub) groups(ctx context.Context, token string, wanted []string, who *policy.Identity) error {
	isTeam := func(name string) bool { return strings.Contains(name, "/") }
	if slices.ContainsFunc(wanted, func(name string) bool { return !isTeam(name) }) {
		list, err := gitHubList[struct {
			Login string `json:"login"`
		}](ctx, g, token, "/user/orgs")
		if err != nil {
			return err
		}
		for _, org := range list {
			who.Groups = append(who.Groups, org.Login)
		}
	}
	if !slices.ContainsFunc(wanted, isTeam) {
		return nil
	}
	list, err := gitHubList[struct {
		Slug string `json:"slug"`
		Of   struct {
			Login string `json:"login"`
		} `json:"organization"`
	}](ctx, g, token, "/user/teams")
	for _, team := range list {
		who.Groups = append(who.Groups, team.Of.Login+"/"+team.Slug)
	}
	return err
}

// gitHubList reads a list from the API, up to a limit. It counts the pages itself, since
// the link to the next page in an answer could point anywhere.
func gitHubList[T any](ctx context.Context, g *gitHub, token, path string) ([]T, error) {
	var all []T
	for n := range gitHubPages {
		var list []T
		if err := g.get(ctx, token, fmt.Sprintf("%s?per_page=%d&page=%d", path, gitHubPage, n+1), &list); err != nil {
			return nil, err
		}
		if all = append(all, list...); len(list) < gitHubPage {
			break
		}
	}
	return all, nil
}

// get reads an answer of the API.
func (g *gitHub) get(ctx context.Context, token, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.api+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", gitHubVersion)
	req.Header.Set("User-Agent", "adit") // GitHub refuses requests without one
	name, _, _ := strings.Cut(path, "?")
	answer, err := g.client.Do(req)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, cutShort(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("read %s: it answers %d %s", name, answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("read %s: %w", name, cutShort(err))
	}
	return nil
}
