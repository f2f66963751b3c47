package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/names"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/signin"
)

// MaxSession is the longest time for which a visitor may be signed in.
const MaxSession = 90 * 24 * time.Hour

const (
	signInLabel  = "sign-in" // under the relay's domain, unless sign_in_host is set
	maxProviders = 50
)

// SignIn is an identity provider that visitors sign in with.
type SignIn struct {
	Name             string   `toml:"name"`                  // the name that policies use
	Type             string   `toml:"type"`                  // oidc or github; empty: oidc
	Issuer           string   `toml:"issuer"`                // URL; for oidc
	URL              string   `toml:"url"`                   // for github: a GitHub Enterprise Server; empty: github.com
	ClientID         string   `toml:"client_id"`             // the relay's id at the provider
	ClientSecretFile string   `toml:"client_secret_file"`    // file; empty: the provider requires none
	Scopes           []string `toml:"scopes"`                // empty: openid, email, profile
	GroupsClaim      string   `toml:"groups_claim"`          // the claim that contains groups; empty: groups
	UnverifiedEmails bool     `toml:"unverified_emails"`     // accept addresses that the provider does not declare verified
	CA               string   `toml:"ca"`                    // file; the authority of the provider's certificate
	Session          string   `toml:"session" is:"duration"` // duration; how long visitors stay signed in; empty: 12h
}

// SignInName returns the name that identity providers send visitors back to, or "" if
// there are no providers.
func (c *Config) SignInName() string {
	if len(c.SignIn) == 0 {
		return ""
	}
	return c.CallbackHost()
}

// CallbackHost returns the name that identity providers send visitors back to, or would
// if there were any.
func (c *Config) CallbackHost() string { return cmp.Or(c.SignInHost, signInLabel+"."+c.Domain) }

func (c *Config) validateSignIn() error {
	switch {
	case c.SignInHost != "" && !names.Valid(c.SignInHost):
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

// validate checks what all providers have in common, and then what is specific to their
// type. key returns the full name of a setting.
func (s *SignIn) validate(key func(name string) string) error {
	switch {
	case !policy.ValidProviderName(s.Name):
		return atKey(key("name"), "%q is not a name for policies to call it by; write it in small letters, as company", s.Name)
	case s.ClientID == "":
		return atKey(key("client_id"), "is required: the name that the provider has for this relay")
	}
	if v, err := time.ParseDuration(s.Session); s.Session != "" && (err != nil || v < time.Minute || v > MaxSession) {
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

// validSite reports whether text is a URL that secrets may be sent to.
func validSite(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && u.User == nil && u.RawQuery == "" && u.Fragment == "" && (u.Scheme == "https" || u.Scheme == "http" && thisMachine(u.Hostname()))
}

// thisMachine reports whether a host is this machine.
func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
