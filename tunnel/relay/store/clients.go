package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"adit/internal/natural"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/relay/store/table"
)

// Client is one customer of the relay, with the secrets that authenticate it.
type Client struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	Created time.Time   `json:"created"`
	Revoked time.Time   `json:"revoked,omitzero"`
	Secrets []Secret    `json:"secrets,omitempty"` // newest first
	Scope   scope.Scope `json:"scope,omitzero"`
}

// Secret is what is stored of a token's secret.
type Secret struct {
	Hash    []byte    `json:"hash"` // SHA-256
	Hint    string    `json:"hint"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
}

// Active reports whether the client has not been revoked.
func (c Client) Active() bool { return c.Revoked.IsZero() }

// Expired reports whether the client's scope has expired.
func (c Client) Expired(now time.Time) bool {
	return !c.Scope.Expires.IsZero() && !now.Before(c.Scope.Expires)
}

const maxSecrets = 4

var clientName = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// ErrName is returned for an invalid client name.
var ErrName = errors.New("a client's name has 1 to 63 lower-case letters, digits, dots, hyphens or underscores, and begins and ends with a letter or digit")

// ErrRevoked is returned when a revoked client is to get a new token.
var ErrRevoked = errors.New("the client is revoked; add it again")

// Clients are the relay's clients, by name.
type Clients struct {
	table *table.Table[Client]

	mu     sync.RWMutex
	byHash map[[sha256.Size]byte]string   // name
	hashes map[string][][sha256.Size]byte // by name
	byID   map[string]string              // name
	ids    map[string]string              // by name
}

func newClients(t *table.Table[Client]) *Clients {
	c := &Clients{
		table: t, byHash: make(map[[sha256.Size]byte]string), hashes: make(map[string][][sha256.Size]byte),
		byID: make(map[string]string), ids: make(map[string]string),
	}
	t.Each(func(name string, v Client) bool { c.index(name, v, true); return true })
	t.OnChange(c.index)
	// Changes between the two calls above are already in the table, and indexing them twice
	// does no harm.
	t.Each(func(name string, v Client) bool { c.index(name, v, true); return true })
	return c
}

func (c *Clients) index(name string, v Client, exists bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, hash := range c.hashes[name] {
		delete(c.byHash, hash)
	}
	delete(c.hashes, name)
	delete(c.byID, c.ids[name])
	delete(c.ids, name)
	if exists {
		c.byID[v.ID], c.ids[name] = name, v.ID
	}
	if !exists || !v.Active() {
		return
	}
	for _, s := range v.Secrets {
		if len(s.Hash) == sha256.Size {
			hash := [sha256.Size]byte(s.Hash)
			c.byHash[hash] = name
			c.hashes[name] = append(c.hashes[name], hash)
		}
	}
}

// OnChange calls f after every change of a client. f must not block.
func (c *Clients) OnChange(f func(Client)) {
	c.table.OnChange(func(_ string, v Client, exists bool) {
		if exists {
			f(v)
		}
	})
}

// Authenticate returns the client that a secret belongs to.
func (c *Clients) Authenticate(secret []byte, now time.Time) (Client, bool) {
	hash := sha256.Sum256(secret)
	c.mu.RLock()
	name, ok := c.byHash[hash]
	c.mu.RUnlock()
	if !ok {
		return Client{}, false
	}
	client, _, ok := c.table.Get(name)
	if !ok || !client.Takes(hash, now) {
		return Client{}, false
	}
	return client, true
}

// Takes reports whether a secret, given by its SHA-256, is one of the client's and valid at
// now.
func (c Client) Takes(hash [sha256.Size]byte, now time.Time) bool {
	return c.Active() && slices.ContainsFunc(c.Secrets, func(s Secret) bool {
		return subtle.ConstantTimeCompare(s.Hash, hash[:]) == 1 && (s.Expires.IsZero() || now.Before(s.Expires))
	})
}

// Get returns the client with a name.
func (c *Clients) Get(name string) (Client, bool) {
	v, _, ok := c.table.Get(strings.ToLower(name))
	return v, ok
}

// ByID returns the client with an ID.
func (c *Clients) ByID(id string) (Client, bool) {
	c.mu.RLock()
	name, ok := c.byID[id]
	c.mu.RUnlock()
	if !ok {
		return Client{}, false
	}
	v, _, ok := c.table.Get(name)
	if !ok || v.ID != id { // a new client has the name
		return Client{}, false
	}
	return v, true
}

// List returns all clients sorted by name, including revoked ones.
func (c *Clients) List() []Client {
	list := []Client{}
	c.table.Each(func(_ string, v Client) bool { list = append(list, v); return true })
	slices.SortFunc(list, func(a, b Client) int { return natural.Compare(a.Name, b.Name) })
	return list
}

// Add creates a client with its first secret. The name of a revoked client may be reused; the
// new client has nothing of the old one.
func (c *Clients) Add(ctx context.Context, name string, secret [32]byte, hint string) (Client, error) {
	return c.AddWith(ctx, name, secret, hint, scope.Scope{})
}

// AddWith is Add with a scope, which must have been checked.
func (c *Clients) AddWith(ctx context.Context, name string, secret [32]byte, hint string, scope scope.Scope) (Client, error) {
	name = strings.ToLower(name)
	if !clientName.MatchString(name) || strings.Contains(name, "..") {
		return Client{}, ErrName
	}
	now := time.Now().UTC()
	client := Client{ID: newID("c"), Name: name, Created: now, Secrets: []Secret{newSecret(secret, hint, now)}, Scope: scope}
	_, err := c.table.Change(ctx, name, func(v Client, exists bool) (Client, error) {
		if exists && v.Active() && v.ID != client.ID { // otherwise an attempt whose answer was lost created it
			return v, bucket.ErrExists
		}
		return client, nil
	})
	if err != nil {
		return Client{}, err
	}
	return client, nil
}

// Revoke withdraws a client's right to connect. Revoking it again is not an error.
func (c *Clients) Revoke(ctx context.Context, name string) (Client, error) {
	return c.change(ctx, name, func(v *Client) error {
		if v.Active() {
			v.Revoked, v.Secrets = time.Now().UTC(), nil
		}
		return nil
	})
}

// SetScope gives a client another scope. If against returns an error for the client as it is,
// SetScope changes nothing and returns that error.
func (c *Clients) SetScope(ctx context.Context, name string, scope scope.Scope, against table.Against[Client]) (client Client, err error) {
	err = c.table.Unless(ctx, strings.ToLower(name), against, func(against table.Against[Client]) (err error) {
		client, err = c.change(ctx, name, func(v *Client) error {
			if !v.Active() {
				return ErrRevoked
			}
			if err := against(*v, true); err != nil {
				return err
			}
			v.Scope = scope
			return nil
		})
		return err
	})
	return client, err
}

// Rotate adds a secret to a client. Its other secrets expire after overlap.
func (c *Clients) Rotate(ctx context.Context, name string, secret [32]byte, hint string, overlap time.Duration) (Client, error) {
	return c.change(ctx, name, func(v *Client) error {
		if !v.Active() {
			return ErrRevoked
		}
		now := time.Now().UTC()
		limit := now.Add(overlap)
		kept := []Secret{newSecret(secret, hint, now)}
		for _, s := range v.Secrets {
			if s.Expires.IsZero() || s.Expires.After(limit) {
				s.Expires = limit
			}
			if s.Expires.After(now) && len(kept) < maxSecrets {
				kept = append(kept, s)
			}
		}
		v.Secrets = kept
		return nil
	})
}

func (c *Clients) change(ctx context.Context, name string, f func(*Client) error) (Client, error) {
	return c.table.Change(ctx, strings.ToLower(name), func(v Client, exists bool) (Client, error) {
		if !exists {
			return v, bucket.ErrNotFound
		}
		v.Secrets = slices.Clone(v.Secrets)
		err := f(&v)
		return v, err
	})
}

func newSecret(secret [32]byte, hint string, now time.Time) Secret {
	hash := sha256.Sum256(secret[:])
	return Secret{Hash: hash[:], Hint: hint, Created: now}
}

// newID returns a random ID with a prefix that says what it identifies.
func newID(prefix string) string {
	var b [9]byte
	rand.Read(b[:])
	return prefix + "_" + hex.EncodeToString(b[:])
}
