package config

import (
	"strings"
	"testing"
)

func TestSettingsOfProvidersNameTheKey(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*SignIn)
		want   string
	}{
		"a provider of OpenID Connect": {func(*SignIn) {}, ""},
		"which may be said":            {func(s *SignIn) { s.Type = "oidc" }, ""},
		"of another kind":              {func(s *SignIn) { s.Type = "saml" }, "sign_in[0].type: "},
		"no name":                      {func(s *SignIn) { s.Name = "" }, "sign_in[0].name: "},
		"no client":                    {func(s *SignIn) { s.ClientID = "" }, "sign_in[0].client_id: "},
		"a long session":               {func(s *SignIn) { s.Session = "2161h" }, "sign_in[0].session: "},
		"plain HTTP":                   {func(s *SignIn) { s.Issuer = "http://login.example.com" }, "sign_in[0].issuer: "},
		"a password in the URL":        {func(s *SignIn) { s.Issuer = "https://a:b@login.example.com" }, "sign_in[0].issuer: "},
		"scopes without openid":        {func(s *SignIn) { s.Scopes = []string{"email"} }, "sign_in[0].scopes: "},
		"the URL of GitHub's":          {func(s *SignIn) { s.URL = "https://github.example.com" }, "sign_in[0].url: "},
		"GitHub":                       {func(s *SignIn) { s.Type, s.Issuer = "github", "" }, ""},
		"a server of GitHub's":         {func(s *SignIn) { s.Type, s.Issuer, s.URL = "github", "", "https://github.example.com/" }, ""},
		"GitHub by an issuer":          {func(s *SignIn) { s.Type = "github" }, "sign_in[0].issuer: "},
		"GitHub with scopes":           {func(s *SignIn) { s.Type, s.Issuer, s.Scopes = "github", "", []string{"repo"} }, "sign_in[0].scopes: "},
		"GitHub with a claim":          {func(s *SignIn) { s.Type, s.Issuer, s.GroupsClaim = "github", "", "g" }, "sign_in[0].groups_claim: "},
		"GitHub, unverified":           {func(s *SignIn) { s.Type, s.Issuer, s.UnverifiedEmails = "github", "", true }, "sign_in[0].unverified_emails: "},
		"GitHub without a secret":      {func(s *SignIn) { s.Type, s.Issuer, s.ClientSecretFile = "github", "", "" }, "sign_in[0].client_secret_file: "},
		"GitHub by plain HTTP":         {func(s *SignIn) { s.Type, s.Issuer, s.URL = "github", "", "http://github.example.com" }, "sign_in[0].url: "},
		"the URL of its API":           {func(s *SignIn) { s.Type, s.Issuer, s.URL = "github", "", "https://github.example.com/api/v3" }, "sign_in[0].url: "},
	} {
		cfg := Defaults()
		cfg.Domain, cfg.DataDir = "relay.test", t.TempDir()
		cfg.SignIn = []SignIn{{Name: "company", Issuer: "https://login.example.com", ClientID: "adit", ClientSecretFile: "secret"}}
		c.change(&cfg.SignIn[0])
		if err := cfg.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
