package config

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"adit/tunnel/relay/policy"
)

const (
	signInLabel  = "sign-in" // under the relay's domain, unless sign_in_host is set
	maxSession   = 90 * 24 * time.Hour
	maxProviders = 50
)

// SignIn is an identity provider that visitors sign in with, by OpenID Connect.
type SignIn struct {
	Name             string   `toml:"name"`                  // as policies call it
	Issuer           string   `toml:"issuer"`                // URL
	ClientID         string   `toml:"client_id"`             // of this relay there
	ClientSecretFile string   `toml:"client_secret_file"`    // file; empty: the provider asks for none
	Scopes           []string `toml:"scopes"`                // empty: openid, email, profile
	GroupsClaim      string   `toml:"groups_claim"`          // that names groups; empty: groups
	UnverifiedEmails bool     `toml:"unverified_emails"`     // addresses count that the provider does not call verified
	CA               string   `toml:"ca"`                    // file; that the provider's certificate is from
	Session          string   `toml:"session" is:"duration"` // duration; how long visitors are signed in; empty: 12h
}

// SignInName is the name that identity providers send visitors back to; empty:
// there are none.
func (c *Config) SignInName() string {
	if len(c.SignIn) == 0 {
		return ""
	}
	return c.CallbackHost()
}

// CallbackHost is the name that identity providers send visitors back to, or would
// if there were one.
func (c *Config) CallbackHost() string { return cmp.Or(c.SignInHost, signInLabel+"."+c.Domain) }

func (c *Config) validateSignIn() error {
	c.SignInHost = strings.ToLower(strings.TrimSuffix(c.SignInHost, "."))
	switch {
	case c.SignInHost != "" && !ValidName(c.SignInHost):
		return atKey("sign_in_host", "%q is not a host name; write it alone, as sign-in.tunnel.example.com", c.SignInHost)
	case c.SignInHost != "" && len(c.SignIn) == 0:
		return atKey("sign_in_host", "is for identity providers; add one as [[sign_in]]")
	case len(c.SignIn) > maxProviders:
		return atKey("sign_in", "has more than %d identity providers", maxProviders)
	}
	for i := range c.SignIn {
		key := func(name string) string { return fmt.Sprintf("sign_in[%d].%s", i, name) }
		s := &c.SignIn[i]
		switch {
		case !policy.ValidProviderName(s.Name):
			return atKey(key("name"), "%q is not a name for policies to call it by; write it in small letters, as company", s.Name)
		case slices.ContainsFunc(c.SignIn[:i], func(o SignIn) bool { return o.Name == s.Name }):
			return atKey(key("name"), "%q comes twice", s.Name)
		case s.ClientID == "":
			return atKey(key("client_id"), "is required: the name that the provider has for this relay")
		case len(s.Scopes) > 0 && !slices.Contains(s.Scopes, "openid"):
			return atKey(key("scopes"), `must have "openid" among them`)
		}
		if u, err := url.Parse(s.Issuer); err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.Scheme != "https" && !(u.Scheme == "http" && thisMachine(u.Hostname())) {
			return atKey(key("issuer"), "%q is not an https URL; write it as the provider does, as https://login.example.com", s.Issuer)
		}
		if v, err := time.ParseDuration(s.Session); s.Session != "" && (err != nil || v < time.Minute || v > maxSession) {
			return atKey(key("session"), "%q is not a duration of 1m to 2160h, as 12h", s.Session)
		}
	}
	return nil
}

// thisMachine reports whether a host is this machine.
func thisMachine(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}
