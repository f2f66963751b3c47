package operator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"adit/tunnel/relay/console"
	"adit/tunnel/relay/proof"
	"adit/tunnel/relay/quota"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/scope"
)

// clientError translates the store's errors about clients for the operator.
func clientError(name string, err error) error {
	var scope *scope.Error
	switch {
	case errors.As(err, &scope):
		return bad(http.StatusBadRequest, "invalid_parameter", scope.Field, "%s", scope.Error())
	case errors.Is(err, bucket.ErrExists):
		return bad(http.StatusBadRequest, "invalid_parameter", "name", "there is a client named %s already; rotate its token, or revoke it first", name)
	case errors.Is(err, store.ErrName):
		return bad(http.StatusBadRequest, "invalid_parameter", "name", "%v", store.ErrName)
	case errors.Is(err, store.ErrRevoked):
		return bad(http.StatusBadRequest, "invalid_parameter", "name", "the client %s is revoked; add it again", name)
	case errors.Is(err, bucket.ErrNotFound):
		return bad(http.StatusNotFound, "not_found", "", "there is no client named %s", name)
	}
	return err
}

// Clients returns all clients, including revoked ones.
func (o *Operator) Clients() []console.Client {
	connected := o.cfg.Relay.Connected()
	list := []console.Client{}
	for _, c := range o.cfg.Store.Clients.List() {
		list = append(list, o.shownClient(c, connected[c.ID]))
	}
	return list
}

func (o *Operator) shownClient(c store.Client, has Connected) console.Client {
	v := console.Client{
		Name: c.Name, ClientID: c.ID, CreatedAt: c.Created, State: "active", Tokens: []console.Token{},
		Sessions: has.Sessions, Claims: o.cfg.Store.Claims.CountOfClient(c.ID), Tunnels: has.Tunnels, Scope: c.Scope,
	}
	switch {
	case !c.Active():
		v.State, v.RevokedAt = "revoked", &c.Revoked
	case c.Expired(time.Now()):
		v.State = "expired"
	}
	for _, s := range c.Secrets {
		t := console.Token{Hint: s.Hint, CreatedAt: s.Created}
		if !s.Expires.IsZero() {
			t.ExpiresAt = &s.Expires
		}
		v.Tokens = append(v.Tokens, t)
	}
	month := store.MonthOf(time.Now())
	usage := o.cfg.Accounts.Usage(c.ID, month)
	v.Usage = console.Usage{
		Month: month, BytesIn: usage.In, BytesOut: usage.Out, Limit: c.Scope.Monthly, State: quota.State(c.Scope, usage.In+usage.Out),
	}
	v.Seen = o.lastSeen(c.ID, has.Newest)
	return v
}

// lastSeen returns where a client's newest session is, or was.
func (o *Operator) lastSeen(clientID string, newest *store.Seen) *store.Seen {
	if newest != nil {
		return newest
	}
	if a, ok := o.cfg.Store.Activities.Get(clientID); ok && !a.Seen.At.IsZero() {
		return &a.Seen
	}
	return nil
}

// Client returns a client with what its agents reported, newest first.
func (o *Operator) Client(name string) (console.Client, error) {
	c, ok := o.cfg.Store.Clients.Get(name)
	if !ok {
		return console.Client{}, clientError(name, bucket.ErrNotFound)
	}
	v := o.shownClient(c, o.cfg.Relay.Connected()[c.ID])
	v.Proof = &console.Record{Name: proof.Label + ".DOMAIN", Value: o.cfg.Proofs.Value(c.ID)}
	errs := o.cfg.Notes.Errors(c.ID)
	slices.Reverse(errs)
	urls := o.publicURLs()
	for _, e := range errs[:min(len(errs), store.MaxErrors)] {
		v.Errors = append(v.Errors, console.ClientError{ClientError: e, PublicURL: urls[agentKey{c.ID, e.Key}]})
	}
	v.Tag = scopeTag(c)
	return v, nil
}

// CreateClient adds a client. Its token is shown only this once.
func (o *Operator) CreateClient(ctx context.Context, name string, scope console.Scope) (console.NewToken, error) {
	c, token, err := o.cfg.Clients.Add(ctx, name, scope)
	if err != nil {
		return console.NewToken{}, clientError(name, err)
	}
	o.cfg.Log.Info("client added", "client", c.Name)
	o.Record(ctx, "client.add", c.Name, map[string]any{"client_id": c.ID, "scope": c.Scope})
	return console.NewToken{Name: c.Name, ClientID: c.ID, AuthToken: token.Reveal()}, nil
}

// scopeTag identifies a version of a client's scope by its contents, since a client also
// changes with every new token. A name that is used again belongs to another client.
func scopeTag(c store.Client) string {
	text, _ := json.Marshal(c.Scope) // cannot fail: numbers, texts and a time that was checked
	sum := sha256.Sum256(append([]byte(c.ID+" "), text...))
	return hex.EncodeToString(sum[:12])
}

// SetClient gives a client another scope, which takes effect immediately.
func (o *Operator) SetClient(ctx context.Context, name string, scope console.Scope, e console.Expected) (console.Client, error) {
	if err := scope.Check(); err != nil {
		return console.Client{}, clientError(name, err)
	}
	before, _ := o.cfg.Store.Clients.Get(name)
	c, err := o.cfg.Store.Clients.SetScope(ctx, name, scope,
		expecting(e, scopeTag, "what the client %s may do has changed since it was read, so nothing was changed; read it again", name))
	if err != nil {
		return console.Client{}, clientError(name, err)
	}
	o.cfg.Log.Info("client's scope set", "client", c.Name)
	o.Record(ctx, "client.set", c.Name, map[string]any{"client_id": c.ID, "scope": c.Scope, "before": before.Scope})
	return o.Client(c.Name)
}

// NewClientToken gives a client a new token. The old one works for another overlap.
func (o *Operator) NewClientToken(ctx context.Context, name string, overlap time.Duration) (console.NewToken, error) {
	c, token, err := o.cfg.Clients.Rotate(ctx, name, overlap)
	if err != nil {
		return console.NewToken{}, clientError(name, err)
	}
	o.cfg.Log.Info("client's token rotated", "client", c.Name)
	o.Record(ctx, "client.rotate", c.Name, map[string]any{"client_id": c.ID, "overlap_seconds": int64(overlap.Seconds())})
	return console.NewToken{Name: c.Name, ClientID: c.ID, AuthToken: token.Reveal()}, nil
}

// DropClient revokes a client.
func (o *Operator) DropClient(ctx context.Context, name string) error {
	c, err := o.cfg.Clients.Revoke(ctx, name)
	if c.ID != "" { // it is revoked even if not all of its names have been given back yet
		o.cfg.Log.Info("client revoked", "client", c.Name)
		o.Record(ctx, "client.revoke", c.Name, map[string]any{"client_id": c.ID})
	}
	if err != nil {
		return clientError(name, err)
	}
	return nil
}
