package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/signin"
	"adit/tunnel/relay/store"
)

const (
	signInLabel   = "sign-in" // under the relay's domain, unless sign_in_host is set
	signInSession = 12 * time.Hour
	maxSession    = 90 * 24 * time.Hour
	maxProviders  = 50
)

// signInHost is the name that identity providers send visitors back to; empty:
// there are none.
func (c *Config) signInHost() string {
	if len(c.SignIn) == 0 {
		return ""
	}
	return cmp.Or(c.SignInHost, signInLabel+"."+c.Domain)
}

func (c *Config) validateSignIn() error {
	c.SignInHost = strings.ToLower(strings.TrimSuffix(c.SignInHost, "."))
	switch {
	case c.SignInHost != "" && !validName(c.SignInHost):
		return atKey("sign_in_host", "%q is not a host name; write it alone, as sign-in.tunnel.example.com", c.SignInHost)
	case c.SignInHost != "" && len(c.SignIn) == 0:
		return atKey("sign_in_host", "is for identity providers; add one as [[sign_in]]")
	case len(c.SignIn) > maxProviders:
		return atKey("sign_in", "has more than %d identity providers", maxProviders)
	}
	for i := range c.SignIn {
		s := &c.SignIn[i]
		if slices.ContainsFunc(c.SignIn[:i], func(o SignIn) bool { return o.Name == s.Name }) {
			return atKey(fmt.Sprintf("sign_in[%d].name", i), "%q comes twice", s.Name)
		}
		if err := s.validate(func(name string) string { return fmt.Sprintf("sign_in[%d].%s", i, name) }); err != nil {
			return err
		}
	}
	return nil
}

// validate checks what all providers have, and then what their kinds do; key names
// a setting in full.
func (s *SignIn) validate(key func(name string) string) error {
	switch {
	case !policy.ValidProviderName(s.Name):
		return atKey(key("name"), "%q is not a name for policies to call it by; write it in small letters, as company", s.Name)
	case s.ClientID == "":
		return atKey(key("client_id"), "is required: the name that the provider has for this relay")
	}
	if v, err := time.ParseDuration(s.Session); s.Session != "" && (err != nil || v < time.Minute || v > maxSession) {
		return atKey(key("session"), "%q is not a duration of 1m to 2160h, as 12h", s.Session)
	}
	switch s.Type {
	case "", signin.OpenID:
		return s.validateOpenID(key)
	case signin.GitHub:
		return s.validateGitHub(key)
	}
	return atKey(key("type"), "%q is none; it is oidc or github", s.Type)
}

func (s *SignIn) validateOpenID(key func(string) string) error {
	switch {
	case s.URL != "":
		return atKey(key("url"), `is for type = "github"; a provider of OpenID Connect has an issuer`)
	case len(s.Scopes) > 0 && !slices.Contains(s.Scopes, "openid"):
		return atKey(key("scopes"), `must have "openid" among them`)
	case !validSite(s.Issuer):
		return atKey(key("issuer"), "%q is not an https URL; write it as the provider does, as https://login.example.com", s.Issuer)
	}
	return nil
}

func (s *SignIn) validateGitHub(key func(string) string) error {
	for _, other := range []struct {
		name string
		set  bool
	}{{"issuer", s.Issuer != ""}, {"scopes", s.Scopes != nil}, {"groups_claim", s.GroupsClaim != ""}, {"unverified_emails", s.UnverifiedEmails}} {
		if other.set {
			return atKey(key(other.name), "is for providers of OpenID Connect, which GitHub is not; leave it out")
		}
	}
	if s.ClientSecretFile == "" {
		return atKey(key("client_secret_file"), "is required: GitHub asks for the secret that it gave the relay")
	}
	s.URL = strings.TrimSuffix(s.URL, "/")
	if u, err := url.Parse(s.URL); s.URL != "" && (err != nil || !validSite(s.URL) || u.Path != "") {
		return atKey(key("url"), "%q is not the URL of a GitHub Enterprise Server, as https://github.example.com", s.URL)
	}
	return nil
}

// validSite reports whether a text is a URL that secrets may be sent to.
func validSite(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http" && thisMachine(u.Hostname()))
}

// thisMachine reports whether a host is this machine.
func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// openSignIn returns what has visitors sign in, or nil without a provider. It does
// not ask providers yet: one that is away keeps no relay from starting.
func (r *Relay) openSignIn(ctx context.Context, secure net.Addr) (*signin.Visitors, error) {
	if len(r.cfg.SignIn) == 0 {
		return nil, nil
	}
	key, err := r.store.Settings.Once(ctx, store.SettingSignInKey, func() ([]byte, error) {
		key := make([]byte, 32)
		rand.Read(key)
		return key, nil
	})
	if err != nil {
		return nil, err
	}
	conf := signin.Config{Key: key, Host: r.cfg.signInHost(), Origin: r.signInOrigin(secure), Ended: r.store.Ended.At, Log: r.log}
	for i, s := range r.cfg.SignIn {
		p := signin.Provider{
			Name: s.Name, Kind: s.Type, Issuer: s.Issuer, ClientID: s.ClientID, Scopes: s.Scopes, GroupsClaim: s.GroupsClaim,
			UnverifiedEmails: s.UnverifiedEmails, Session: signInSession,
		}
		if s.Type == signin.GitHub {
			p.Issuer = cmp.Or(s.URL, signin.GitHubURL)
		}
		if s.Session != "" {
			p.Session, _ = time.ParseDuration(s.Session) // validated
		}
		if s.ClientSecretFile != "" {
			if p.ClientSecret, err = readSecretFile(fmt.Sprintf("sign_in[%d].client_secret_file", i), s.ClientSecretFile, r.log); err != nil {
				return nil, err
			}
		}
		if p.CA, err = readRoots(fmt.Sprintf("sign_in[%d].ca", i), s.CA); err != nil {
			return nil, err
		}
		conf.Providers = append(conf.Providers, p)
	}
	return signin.New(conf), nil
}

// signInOrigin is the site that identity providers send visitors back to, or would
// if there were one; secure is where the https edge listens.
func (r *Relay) signInOrigin(secure net.Addr) string {
	host := cmp.Or(r.cfg.SignInHost, signInLabel+"."+r.cfg.Domain)
	return "https://" + withPort(host, publicPort(r.cfg.PublicHTTPSPort, secure), 443)
}

// CallbackURL is what to register with identity providers; empty: there are none.
func (r *Relay) CallbackURL() string {
	if r.signIn == nil {
		return ""
	}
	return r.signIn.URL()
}

// providerNames are the identity providers that policies can name.
func (r *Relay) providerNames() []string {
	names := make([]string, 0, len(r.cfg.SignIn))
	for _, s := range r.cfg.SignIn {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}

// knownProvider reports why a policy's provider is of no use.
func (r *Relay) knownProvider(s *policy.SignIn) error {
	names := r.providerNames()
	switch {
	case s == nil || slices.Contains(names, s.Provider):
		return nil
	case len(names) == 0:
		return bad(http.StatusBadRequest, "invalid_parameter", "sign_in.provider", "the relay has no identity provider; its operator adds one to relay.toml as [[sign_in]]")
	}
	return bad(http.StatusBadRequest, "invalid_parameter", "sign_in.provider", "the relay has no identity provider %q; it has %s", s.Provider, strings.Join(names, ", "))
}

// signInSettings tell of the identity providers.
func (r *Relay) signInSettings() console.SignInSettings {
	s := console.SignInSettings{
		CallbackURL: signin.CallbackURL(r.signInOrigin(r.edge.HTTPSAddr())), Providers: []console.SignInProvider{},
	}
	if r.signIn == nil {
		return s
	}
	for _, p := range r.signIn.Status() {
		shown := console.SignInProvider{Name: p.Name, Type: p.Kind, Issuer: p.Issuer, Error: p.Error}
		if !p.Asked.IsZero() {
			asked := p.Asked.UTC()
			shown.AskedAt = &asked
		}
		s.Providers = append(s.Providers, shown)
	}
	return s
}
