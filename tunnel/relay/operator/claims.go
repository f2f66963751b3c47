package operator

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"adit/internal/wildcard"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/names"
	"adit/tunnel/relay/proof"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/claims"
)

// ClaimList returns the names and ports that clients have, whether or not they are in
// use.
func (o *Operator) ClaimList() []console.Claim {
	running := map[string]bool{}
	for _, ep := range o.cfg.Edge.Endpoints() {
		running[ep.Target] = true
	}
	clients := o.clientNames()
	list := []console.Claim{}
	for _, c := range o.cfg.Store.Claims.List() {
		list = append(list, console.Claim{
			Target: names.Shown(c.Target), Client: clients[c.ClientID], ClientID: c.ClientID, CreatedAt: c.Created, Running: running[c.Target],
		})
	}
	return list
}

// ReleaseClaim takes a name or port from a client that is not using it, and deletes the
// proof that the name is the client's.
func (o *Operator) ReleaseClaim(ctx context.Context, text string) error {
	target, err := o.target(text)
	if err != nil {
		return err
	}
	var had claims.Claim
	err = o.cfg.Store.Claims.ReleaseUnless(ctx, target, func(c claims.Claim, exists bool) error {
		had = c
		if exists && slices.ContainsFunc(o.cfg.Edge.Endpoints(), func(ep *routing.Endpoint) bool { return ep.Target == target }) {
			return bad(http.StatusConflict, "conflict", "", "%s is in use now; stop its tunnel first, or revoke its client", names.Shown(target))
		}
		return nil
	})
	name, all := wildcard.Base(claims.DomainOf(target))
	proven, proved := o.cfg.Store.Proofs.Get(name)
	if errors.Is(err, bucket.ErrNotFound) && proved && !all {
		had.ClientID, err = proven.ClientID, nil
	}
	if errors.Is(err, bucket.ErrNotFound) {
		return bad(http.StatusNotFound, "not_found", "", "no client has %s", names.Shown(target))
	}
	if err != nil {
		return err
	}
	if proved && proven.ClientID == had.ClientID && !slices.ContainsFunc(proof.Names(name), o.cfg.Names.Claimed) {
		if err := o.cfg.Store.Proofs.Delete(ctx, proven.Domain); err != nil {
			return err
		}
	}
	client := o.clientNames()[had.ClientID]
	o.cfg.Log.Info("claim released by the operator", "target", names.Shown(target), "client", client)
	o.Record(ctx, "claim.release", names.Shown(target), map[string]string{"client": client})
	return nil
}
