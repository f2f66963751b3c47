package relay

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"adit/internal/wildcard"
	"adit/tunnel/relay/audit"
	"adit/tunnel/relay/proof"
	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/scope"
	"adit/tunnel/wire"
)

// openProofs creates or reads the key for the DNS records.
func (r *Relay) openProofs(ctx context.Context) error {
	key, err := r.store.Settings.Once(ctx, store.SettingProofKey, func() ([]byte, error) {
		key := make([]byte, 32)
		rand.Read(key)
		return key, nil
	})
	if err != nil {
		return err
	}
	lookup := r.opts.lookupTXT
	if lookup == nil {
		lookup = r.cfg.Domains.Resolver().LookupTXT
	}
	r.records = proof.New(key, lookup)
	return nil
}

// prove returns an error if a client may not have a name outside the relay's domain. It
// needs either a DNS record that proves the name, or the operator's permission. Whoever
// has a name also has everything under it, so a wildcard is proved by the name above it.
func (r *Relay) prove(ctx context.Context, c store.Client, scope scope.Scope, wanted string) error {
	name, _ := wildcard.Base(wanted)
	have, known := r.store.Proofs.Get(name)
	if known && have.ClientID == c.ID {
		return nil
	}
	if scope.UnprovedDomains {
		if known { // another client has proved it
			return wire.Forbidden("domain", "%s is proved to be another client's; choose another, or ask the relay's operator", name)
		}
		return r.proved(ctx, store.Proof{Domain: name, ClientID: c.ID, Proved: time.Now().UTC(), By: store.ProvedByScope})
	}
	found, err := r.records.Find(ctx, name, c.ID)
	if found {
		r.log.Info("domain proved", "client", c.Name, "domain", name)
		return r.proved(ctx, store.Proof{Domain: name, ClientID: c.ID, Proved: time.Now().UTC(), By: store.ProvedByRecord})
	}
	message := fmt.Sprintf("to use %s, prove that it is yours: add the DNS TXT record %s.%s with the value %s, and try again", wanted, proof.Label, name, r.records.Value(c.ID))
	if err != nil {
		message += " (asking the DNS: " + err.Error() + ")"
	}
	return &wire.Problem{Code: wire.CodeForbidden, Field: "domain", Message: message}
}

// proved stores a proof. If the name changes hands, the previous client's claims are
// given back.
func (r *Relay) proved(ctx context.Context, p store.Proof) (err error) {
	if !r.trail.leave(p.ClientID) {
		return &wire.Problem{Code: wire.CodeUnavailable, Field: "domain", Message: "this client has proved too many names in a short time; the relay now accepts one a minute"}
	}
	client, _ := r.store.Clients.ByID(p.ClientID)
	ctx = audit.WithActor(ctx, audit.Actor{Kind: audit.KindClient, Name: client.Name})
	end, err := r.ledger.Begin(ctx, "proof of "+p.Domain)
	if err != nil {
		return err
	}
	defer func() { end(err) }()
	for _, name := range proof.Names(p.Domain) {
		claim, ok := r.store.Claims.Get(claims.TargetDomain(name))
		if !ok || claim.ClientID == p.ClientID {
			continue
		}
		for _, h := range claim.Holders {
			if err := r.store.Claims.Release(ctx, claim.Target, claim.ClientID, h.Instance, h.Key); err != nil {
				return err
			}
		}
	}
	if err := r.store.Proofs.Set(ctx, p); err != nil {
		return err
	}
	r.ledger.Record(ctx, "domain.prove", p.Domain, map[string]string{"by": p.By})
	return r.unprove(ctx, p)
}

// unprove deletes proofs of a client that has more of them than it may have names. It
// deletes the oldest ones for names that the client does not have now, since they can be
// proved again.
func (r *Relay) unprove(ctx context.Context, last store.Proof) error {
	var list []store.Proof
	for _, p := range r.store.Proofs.List() {
		if p.ClientID == last.ClientID {
			list = append(list, p)
		}
	}
	extra := len(list) - r.cfg.Limits.ClaimsPerClient
	if extra <= 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b store.Proof) int { return a.Proved.Compare(b.Proved) })
	for _, p := range list {
		if extra == 0 {
			break
		}
		if p.Domain == last.Domain || p.By == store.ProvedByUpgrade || slices.ContainsFunc(proof.Names(p.Domain), func(name string) bool {
			_, claimed := r.store.Claims.Get(claims.TargetDomain(name))
			return claimed
		}) {
			continue
		}
		if err := r.store.Proofs.Delete(ctx, p.Domain); err != nil {
			return err
		}
		extra--
	}
	return nil
}

// proofChanged takes a name from the agents here that are not its client's any more,
// whichever node received the proof.
func (r *Relay) proofChanged(domain string, p store.Proof, exists bool) {
	if !exists {
		return
	}
	for _, s := range r.roster.All() {
		if s.client.ID != p.ClientID {
			r.task(func() {
				for _, name := range proof.Names(domain) {
					s.lose(name, "the name "+domain+" was proved to be another client's; choose another, or ask the relay's operator")
				}
			})
		}
	}
}

// lose takes a name's tunnels from a session.
func (s *session) lose(domain, reason string) {
	s.claiming.Lock()
	defer s.claiming.Unlock()
	s.mu.Lock()
	var keys []string
	for key, t := range s.tunnels {
		if t.face.Domain == domain {
			keys = append(keys, key)
		}
	}
	s.mu.Unlock()
	for _, key := range keys {
		ctx, cancel := context.WithTimeout(context.Background(), storeWait)
		_ = s.release(ctx, key, given) // the claim is already someone else's
		cancel()
		s.tell(wire.Event{Type: wire.EventClaimLost, Key: key, Reason: reason})
	}
}
