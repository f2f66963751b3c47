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
	askFor         = 10 * time.Second // how long to wait for a provider
	maxAnswer      = 1 << 20          // bytes of a provider's answer
	maxAnswerHeads = 64 << 10         // bytes of its headers
	maxEmail       = 320              // bytes
)

// The kinds of providers.
const (
	OpenID = "oidc"
	GitHub = "github"
)

// Provider is an identity provider that visitors sign in with.
type Provider struct {
	Name string
	Kind string // empty: OpenID
	// Issuer is a URL. For OpenID, it must be exactly as the provider writes it. For
	// GitHub, it is the site without a trailing slash.
	Issuer       string
	ClientID     string
	ClientSecret string         // empty: a public client
	Session      time.Duration  // how long a visitor stays signed in
	CA           *x509.CertPool // that issued its certificate; nil: the system's

	// The remaining fields are for OpenID only.
	Scopes      []string // nil: openid, email and profile
	GroupsClaim string   // the claim with the names of groups; empty: groups
	// UnverifiedEmails accepts addresses that the provider does not declare verified.
	UnverifiedEmails bool
}

// provider is a Provider that can be asked.
type provider struct {
	Provider
	source
	is   string // its mark
	log  *slog.Logger
	told atomic.Int64 // the failed attempt that was last logged
}

// source asks one kind of provider who a visitor is, by OAuth 2.
type source interface {
	// authorize returns the URL to send a visitor to, with a text to bring back. An error
	// means that the provider cannot be asked.
	authorize(ctx context.Context, t trip, sealed string) (string, error)
	// swap exchanges the code that the visitor brings for its identity. The caller adds
	// which provider confirmed the identity, and for how long.
	swap(ctx context.Context, t trip, code string) (*policy.Identity, error)
	// issued reports whether an answer that names its issuer comes from this provider
	// (RFC 9207, section 2.4).
	issued(issuer string) bool
	// lastAsked returns when the provider was last asked, and what went wrong, or "" if
	// nothing did.
	lastAsked() (at time.Time, fault string)
}

// trip is one visitor's way to the provider and back.
type trip struct {
	callback string         // where the visitor is sent back to
	wants    *policy.SignIn // what has to be known about it
	secrets  secrets
	other    bool // the provider should offer another account
}

// mark identifies a provider, to tell it from another that had the same name. It depends
// on the issuer and on the relay's client id there.
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

// bounded fails answers that are longer than any provider's.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// cutShort keeps a provider's page out of logs, since err contains its answer.
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
