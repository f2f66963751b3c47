package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"adit/tunnel/relay/policy"
)

const (
	knownFor      = time.Hour       // how long before asking for a provider's addresses again
	failedFor     = 5 * time.Second // how long to wait before asking a provider again that did not answer
	maxSubject    = 255             // bytes (OpenID Connect Core 1.0, section 2)
	defaultGroups = "groups"        // the claim
)

// openID is a provider that uses OpenID Connect, with what is known about it.
type openID struct {
	Provider
	client *http.Client
	asking chan struct{} // held while asking

	mu     sync.Mutex
	found  *known // nil: not known yet
	at     time.Time
	failed time.Time // when asking last failed
	err    error
}

// known is what a provider says about itself.
type known struct {
	of      *Provider
	remote  *oidc.Provider
	prompts []string
}

func newOpenID(p Provider, client *http.Client) *openID {
	if p.Scopes == nil {
		p.Scopes = []string{oidc.ScopeOpenID, "email", "profile"}
	}
	if p.GroupsClaim == "" {
		p.GroupsClaim = defaultGroups
	}
	return &openID{Provider: p, client: client, asking: make(chan struct{}, 1)}
}

func (p *openID) issued(issuer string) bool { return issuer == p.Issuer }

// lastAsked returns when the provider was last asked, and what went wrong, or "" if
// nothing did.
func (p *openID) lastAsked() (at time.Time, fault string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		return p.at, ""
	}
	return p.failed, p.err.Error()
}

// fresh returns what is known, and whether there is no need to ask now.
func (p *openID) fresh() (*known, error, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch now := time.Now(); {
	case p.found != nil && now.Sub(p.at) < knownFor:
		return p.found, nil, true
	case p.err != nil && now.Sub(p.failed) < failedFor:
		if p.found != nil {
			return p.found, nil, true
		}
		return nil, p.err, true
	}
	return nil, nil, false
}

// discover returns the provider's addresses (OpenID Connect Discovery 1.0, section 4).
// One visitor asks on behalf of all. If that fails, the old addresses are used.
func (p *openID) discover(ctx context.Context) (*known, error) {
	if k, err, ok := p.fresh(); ok {
		return k, err
	}
	select {
	case p.asking <- struct{}{}:
		defer func() { <-p.asking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if k, err, ok := p.fresh(); ok {
		return k, err
	}
	// The visitor may leave, but others are waiting for the answer.
	ctx, cancel := context.WithTimeout(oidc.ClientContext(context.WithoutCancel(ctx), p.client), askFor)
	defer cancel()
	remote, err := oidc.NewProvider(ctx, p.Issuer)
	k := &known{of: &p.Provider, remote: remote}
	if err == nil {
		k.prompts, err = promptsOf(remote)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed, p.err = time.Now(), fmt.Errorf("read the configuration of %s: %w", p.Issuer, cutShort(err))
		if p.found != nil {
			return p.found, nil
		}
		return nil, p.err
	}
	p.found, p.at, p.err = k, time.Now(), nil
	return k, nil
}

func promptsOf(remote *oidc.Provider) ([]string, error) {
	var said struct {
		Prompts []string `json:"prompt_values_supported"`
	}
	if remote.Endpoint().AuthURL == "" || remote.Endpoint().TokenURL == "" {
		return nil, errors.New("it names no addresses for authorization and tokens")
	}
	return said.Prompts, remote.Claims(&said)
}

func (k *known) config(callback string) *oauth2.Config {
	return &oauth2.Config{
		ClientID: k.of.ClientID, ClientSecret: k.of.ClientSecret, Endpoint: k.remote.Endpoint(),
		RedirectURL: callback, Scopes: k.of.Scopes,
	}
}

func (p *openID) authorize(ctx context.Context, t trip, sealed string) (string, error) {
	k, err := p.discover(ctx)
	if err != nil {
		return "", err
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(t.secrets.verifier), oidc.Nonce(t.secrets.nonce)}
	if t.other {
		prompt := "select_account"
		if len(k.prompts) > 0 && !slices.Contains(k.prompts, prompt) {
			prompt = "login"
		}
		options = append(options, oauth2.SetAuthURLParam("prompt", prompt))
	}
	return k.config(t.callback).AuthCodeURL(sealed, options...), nil
}

func (p *openID) swap(ctx context.Context, t trip, code string) (*policy.Identity, error) {
	k, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), askFor)
	defer cancel()
	token, err := k.config(t.callback).Exchange(ctx, code, oauth2.VerifierOption(t.secrets.verifier))
	if err != nil {
		return nil, fmt.Errorf("swap the code: %w", cutShort(err))
	}
	raw, _ := token.Extra("id_token").(string)
	if raw == "" {
		return nil, errors.New("the provider's answer has no id_token")
	}
	id, err := k.remote.VerifierContext(ctx, &oidc.Config{ClientID: p.ClientID}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("verify the id_token: %w", cutShort(err))
	}
	if !same(id.Nonce, t.secrets.nonce) {
		return nil, errors.New("the id_token is of another sign-in: its nonce differs")
	}
	claims := map[string]json.RawMessage{}
	if err := id.Claims(&claims); err != nil {
		return nil, fmt.Errorf("read the id_token: %w", err)
	}
	if (claims["email"] == nil || claims[p.GroupsClaim] == nil) && k.remote.UserInfoEndpoint() != "" {
		if err := k.more(ctx, token, id.Subject, claims); err != nil {
			return nil, err
		}
	}
	return p.identity(id.Subject, claims)
}

// more requests what the id_token leaves out (OpenID Connect Core 1.0, section 5.3).
func (k *known) more(ctx context.Context, token *oauth2.Token, subject string, claims map[string]json.RawMessage) error {
	info, err := k.remote.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return fmt.Errorf("ask who it is: %w", cutShort(err))
	}
	if info.Subject != subject {
		return errors.New("the provider says of another than the id_token who it is")
	}
	further := map[string]json.RawMessage{}
	if err := info.Claims(&further); err != nil {
		return fmt.Errorf("read who it is: %w", err)
	}
	if claims["email"] == nil { // the two belong together
		claims["email"], claims["email_verified"] = further["email"], further["email_verified"]
	}
	if claims[k.of.GroupsClaim] == nil {
		claims[k.of.GroupsClaim] = further[k.of.GroupsClaim]
	}
	return nil
}

// identity reads the identity from claims. A claim of the wrong type counts as missing.
func (p *Provider) identity(subject string, claims map[string]json.RawMessage) (*policy.Identity, error) {
	if subject == "" || len(subject) > maxSubject {
		return nil, errors.New("the provider names nobody")
	}
	who := &policy.Identity{Subject: subject}
	if email := textOf(claims["email"]); len(email) <= maxEmail && (p.UnverifiedEmails || truthOf(claims["email_verified"])) {
		who.Email = policy.LowerEmail(email)
	}
	if json.Unmarshal(claims[p.GroupsClaim], &who.Groups) != nil {
		who.Groups = nil
		if one := textOf(claims[p.GroupsClaim]); one != "" {
			who.Groups = []string{one}
		}
	}
	return who, nil
}

func textOf(claim json.RawMessage) string {
	var text string
	_ = json.Unmarshal(claim, &text) // otherwise it is not text
	return text
}

// truthOf also accepts the text "true", as some providers write it.
func truthOf(claim json.RawMessage) bool {
	var truth bool
	_ = json.Unmarshal(claim, &truth) // otherwise it is not a boolean
	return truth || textOf(claim) == "true"
}
