package relay

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"time"

	"adit/tunnel/relay/config"
	"adit/tunnel/relay/policy"
	"adit/tunnel/relay/signin"
	"adit/tunnel/relay/store"
)

const signInSession = 12 * time.Hour

// openSignIn returns what lets visitors sign in, or nil if there is no provider. It does
// not contact providers yet, so an unavailable one does not keep the relay from starting.
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
	conf := signin.Config{Key: key, Host: r.cfg.SignInName(), Origin: r.signInOrigin(secure), Ended: r.endOf, Mark: r.mark, Log: r.log}
	for i, s := range r.cfg.SignIn {
		p := signin.Provider{
			Name: s.Name, Kind: s.Type, Issuer: s.Issuer, ClientID: s.ClientID, Scopes: s.Scopes, GroupsClaim: s.GroupsClaim,
			UnverifiedEmails: s.UnverifiedEmails, Session: signInSession,
		}
		if s.Type == signin.GitHub {
			p.Issuer = cmp.Or(s.URL, signin.GitHubURL)
		}
		if s.Session != "" {
			p.Session, _ = time.ParseDuration(s.Session) // already validated
		}
		if s.ClientSecretFile != "" {
			if p.ClientSecret, err = config.ReadSecretFile(fmt.Sprintf("sign_in[%d].client_secret_file", i), s.ClientSecretFile, r.log); err != nil {
				return nil, err
			}
		}
		if p.CA, err = config.ReadRoots(fmt.Sprintf("sign_in[%d].ca", i), s.CA); err != nil {
			return nil, err
		}
		conf.Providers = append(conf.Providers, p)
	}
	return signin.New(conf), nil
}

// endOf returns the time up to which a user's sign-ins are no longer valid.
func (r *Relay) endOf(user string) signin.End {
	at, number := r.store.Ended.At(user)
	if at.IsZero() {
		return signin.End{}
	}
	return signin.End{At: at, Mark: policy.Mark{Store: r.store.Ended.Store(), Number: number}}
}

// mark returns the mark of a sign-in that is made now.
func (r *Relay) mark() policy.Mark {
	return policy.Mark{Store: r.store.Ended.Store(), Number: r.store.Ended.Newest()}
}

// signInOrigin is the site that identity providers send visitors back to, or would if
// there were any. secure is where the https edge listens.
func (r *Relay) signInOrigin(secure net.Addr) string {
	return "https://" + withPort(r.cfg.CallbackHost(), publicPort(r.cfg.PublicHTTPSPort, secure), 443)
}

// CallbackURL returns the URL to register with identity providers, or "" if there are
// none.
func (r *Relay) CallbackURL() string {
	if r.signIn == nil {
		return ""
	}
	return r.signIn.URL()
}

// providerNames returns the identity providers that policies can name.
func (r *Relay) providerNames() []string {
	names := make([]string, 0, len(r.cfg.SignIn))
	for _, s := range r.cfg.SignIn {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	return names
}
