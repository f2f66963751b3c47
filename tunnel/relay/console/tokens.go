package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"adit/internal/natural"
	"adit/tunnel/relay/audit"
)

// The scopes of API tokens. None of them gives access to accounts, tokens or backups.
const (
	ScopeRead  = "read"
	ScopeWrite = "write" // and read
)

const (
	tokenPrefix   = "token."
	apiToken      = "adit_api_"
	maxTokens     = 1000
	maxTokenYears = 10
)

// tokenRecord is an API token as it is stored, under the hash of its secret.
type tokenRecord struct {
	Name    string    `json:"name"`
	Scope   string    `json:"scope"`
	Hint    string    `json:"hint"`
	By      string    `json:"by"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"`
}

// APIToken is an API token as the operator sees it.
type APIToken struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Scope      string     `json:"scope"`
	Hint       string     `json:"hint"`
	CreatedBy  string     `json:"created_by"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at,omitempty"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty"` // at this node, since it started
}

// NewAPIToken is the result of adding an API token, shown only once.
type NewAPIToken struct {
	APIToken
	Token string `json:"token"`
}

func (c *Console) shownToken(sum string, t tokenRecord) APIToken {
	v := APIToken{ID: sum[:16], Name: t.Name, Scope: t.Scope, Hint: t.Hint, CreatedBy: t.By, CreatedAt: t.Created}
	if !t.Expires.IsZero() {
		v.ExpiresAt = &t.Expires
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.used[sum]; ok {
		v.LastUsedAt = &at
	}
	return v
}

// tokens returns all API tokens by the hashes of their secrets.
func (c *Console) tokens() map[string]tokenRecord {
	all := map[string]tokenRecord{}
	for key, value := range c.cfg.Keeper.List(tokenPrefix) {
		var t tokenRecord
		if json.Unmarshal(value, &t) == nil {
			all[strings.TrimPrefix(key, tokenPrefix)] = t
		}
	}
	return all
}

func (c *Console) tokenList() []APIToken {
	list := []APIToken{}
	for sum, t := range c.tokens() {
		list = append(list, c.shownToken(sum, t))
	}
	slices.SortFunc(list, func(a, b APIToken) int {
		return cmp.Or(natural.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
	return list
}

// newToken creates an API token. If expires is zero, it works until it is deleted.
func (c *Console) newToken(ctx context.Context, name, scope string, expires time.Time) (NewAPIToken, error) {
	all := c.tokens()
	switch now := time.Now(); {
	case strings.TrimSpace(name) == "" || len(name) > 64:
		return NewAPIToken{}, invalid("name", "name must have 1 to 64 bytes")
	case scope != ScopeRead && scope != ScopeWrite:
		return NewAPIToken{}, invalid("scope", "scope must be read or write")
	case !expires.IsZero() && (expires.Before(now) || expires.After(now.AddDate(maxTokenYears, 0, 0))):
		return NewAPIToken{}, invalid("expires_at", "expires_at must be in the next %d years", maxTokenYears)
	case len(all) >= maxTokens:
		return NewAPIToken{}, invalid("name", "there are %d API tokens already", maxTokens)
	}
	for _, t := range all {
		if t.Name == name {
			return NewAPIToken{}, invalid("name", "there is an API token named %s already", name)
		}
	}
	var secret [32]byte
	rand.Read(secret[:])
	text := apiToken + base64.RawURLEncoding.EncodeToString(secret[:])
	actor := audit.ActorOf(ctx)
	t := tokenRecord{Name: name, Scope: scope, Hint: text[len(text)-4:], By: cmp.Or(actor.Name, actor.Kind), Created: time.Now().UTC(), Expires: expires.UTC()}
	if expires.IsZero() {
		t.Expires = time.Time{}
	}
	if _, err := c.put(ctx, tokenPrefix+sumOf(text), t, 0); err != nil {
		return NewAPIToken{}, err
	}
	return NewAPIToken{c.shownToken(sumOf(text), t), text}, nil
}

// dropToken deletes an API token and returns its name.
func (c *Console) dropToken(ctx context.Context, id string) (string, error) {
	for sum, t := range c.tokens() {
		if sum[:16] != id {
			continue
		}
		return t.Name, c.drop(ctx, tokenPrefix+sum)
	}
	return "", &Error{http.StatusNotFound, "not_found", "there is no such API token", ""}
}

// tokenOf returns the API token of a secret. The lookup uses the secret's hash, so the
// time that it takes reveals nothing about any secret.
func (c *Console) tokenOf(secret string) (tokenRecord, bool) {
	sum := sumOf(secret)
	var t tokenRecord
	value, _, ok := c.cfg.Keeper.Get(tokenPrefix + sum)
	if !ok || json.Unmarshal(value, &t) != nil || !t.Expires.IsZero() && !time.Now().Before(t.Expires) {
		return t, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.used) > maxTokens {
		clear(c.used)
	}
	c.used[sum] = time.Now().UTC()
	return t, true
}
