package relay

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"adit/internal/wildcard"
	"adit/tunnel/relay/console"
	"adit/tunnel/relay/edge/routing"
	"adit/tunnel/relay/store"
)

func (o operator) ClaimList() []console.Claim {
	running := map[string]bool{}
	for _, ep := range o.edge.Endpoints() {
		running[ep.Target] = true
	}
	names := o.clientNames()
	list := []console.Claim{}
	for _, c := range o.store.Claims.List() {
		list = append(list, console.Claim{
			Target: shown(c.Target), Client: names[c.ClientID], ClientID: c.ClientID, CreatedAt: c.Created, Running: running[c.Target],
		})
	}
	return list
}

// ReleaseClaim takes a name or port from a client that does not use it now, and
// forgets how a name was proved to be the client's.
func (o operator) ReleaseClaim(ctx context.Context, text string) error {
	target, err := o.target(text)
	if err != nil {
		return err
	}
	var had store.Claim
	err = o.store.Claims.ReleaseUnless(ctx, target, func(c store.Claim, exists bool) error {
		had = c
		if exists && slices.ContainsFunc(o.edge.Endpoints(), func(ep *routing.Endpoint) bool { return ep.Target == target }) {
			return bad(http.StatusConflict, "conflict", "", "%s is in use now; stop its tunnel first, or revoke its client", shown(target))
		}
		return nil
	})
	name, all := wildcard.Base(store.DomainOf(target))
	proof, proved := o.store.Proofs.Get(name)
	if errors.Is(err, store.ErrNotFound) && proved && !all {
		had.ClientID, err = proof.ClientID, nil
	}
	if errors.Is(err, store.ErrNotFound) {
		return bad(http.StatusNotFound, "not_found", "", "no client has %s", shown(target))
	}
	if err != nil {
		return err
	}
	if proved && proof.ClientID == had.ClientID && !slices.ContainsFunc(provedBy(name), o.claimed) {
		if err := o.store.Proofs.Delete(ctx, proof.Domain); err != nil {
			return err
		}
	}
	client := o.clientNames()[had.ClientID]
	o.log.Info("claim released by the operator", "target", shown(target), "client", client)
	o.Record(ctx, "claim.release", shown(target), map[string]string{"client": client})
	return nil
}
