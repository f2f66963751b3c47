package signin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"adit/tunnel/relay/policy"
)

const (
	askFor         = 10 * time.Second // a provider is waited for
	maxAnswer      = 1 << 20          // bytes of a provider's answer
	maxAnswerHeads = 64 << 10         // bytes of its headers
	maxEmail       = 320              // bytes
)

// Kinds of providers.
const (
	OpenID = "oidc"
	GitHub = "github"
)

// Provider is an identity provider that visitors sign in with.
type Provider struct {
	Name string
	Kind string // empty: OpenID
	// Issuer is a URL: of OpenID as the provider itself writes it, of GitHub its
	// site without a slash at the end.
	Issuer       string
	ClientID     string
	ClientSecret string         // empty: a public client
	Session      time.Duration  // how long a visitor is signed in
	CA           *x509.CertPool // that its certificate is from; nil: the system's

	// Of OpenID alone.
	Scopes      []string // nil: openid, email and profile
	GroupsClaim string   // that has the names of groups; empty: groups
	// UnverifiedEmails takes addresses of which the provider does not say that they
	// are verified.
	UnverifiedEmails bool
}

// provider is a Provider that can be asked.
type provider struct {
	Provider
	source
	is   string // its mark
	log  *slog.Logger
	told atomic.Int64 // when it was asked in vain, as far as the log has it
}

// source is how a kind of provider is asked who a visitor is, by OAuth 2.
type source interface {
	// authorize is where a visitor is sent, with a text to bring back. An error is
	// the provider's, who cannot be asked.
	authorize(ctx context.Context, t trip, sealed string) (string, error)
	// swap swaps the code that the visitor brings for who it is. Of the identity
	// the caller adds which provider has said it, and for how long.
	swap(ctx context.Context, t trip, code string) (*policy.Identity, error)
	// issued reports whether an answer that names its issuer is of this provider
	// (RFC 9207, section 2.4).
	issued(issuer string) bool
	// lastAsked is when the provider was last asked, and what went wrong; empty:
	// nothing.
	lastAsked() (at time.Time, fault string)
}

// trip is one visitor's way to the provider and back.
type trip struct {
	callback string         // where it is sent back to
	wants    *policy.SignIn // what there is to be known of it
	secrets  secrets
	other    bool // the provider is to offer another account
}

// mark tells a provider from another that has had its name: by who it is, and as
// what the relay is known there.
func (p *Provider) mark() string {
	sum := sha256.Sum256(asJSON([]string{cmp.Or(p.Kind, OpenID), p.Issuer, p.ClientID}))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

func newProvider(p Provider, log *slog.Logger) *provider {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: p.CA}
	t.MaxIdleConnsPerHost = 4
	t.MaxResponseHeaderBytes = maxAnswerHeads
	client := &http.Client{Timeout: askFor, Transport: bounded{t}}
	if p.Kind == GitHub {
		return &provider{Provider: p, source: newGitHub(p, client), is: p.mark(), log: log}
	}
	return &provider{Provider: p, source: newOpenID(p, client), is: p.mark(), log: log}
}

// bounded ends answers that are longer than any provider's.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// cutShort keeps a provider's page out of logs: its answer is in the error.
func cutShort(err error) error {
	const most = 300
	if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fmt.Errorf("the answer has more than %d bytes", long.Limit)
	}
	if text := err.Error(); len(text) > most {
		return errors.New(strings.ToValidUTF8(text[:most], "") + "…")
	}
	return err
}
