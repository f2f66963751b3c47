package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"adit/internal/natural"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/seal"
	"adit/tunnel/relay/store/table"
)

// StoredPolicy is a policy's document as it was set.
type StoredPolicy struct {
	Target   string          `json:"target"`
	Document json.RawMessage `json:"document"`
	Changed  time.Time       `json:"changed"`
	// ClientID is the client that had claimed the target. A policy does not pass to the
	// target's next owner. If empty, it belongs to nobody yet, and goes to the first client
	// that claims the target.
	ClientID string `json:"client_id,omitempty"`
	By       string `json:"by,omitempty"` // the client that set it; empty: the operator
	// Claims increases when the target is claimed again. Whoever was about to delete the
	// policy of an unclaimed target then finds a changed one.
	Claims int `json:"claims,omitempty"`
	// Fault is the reason why the document could not be opened, in which case Document is
	// empty.
	Fault error `json:"-"`
}

// Policies holds the documents by target, which is the key of a Claim.
type Policies struct {
	table  *table.Table[StoredPolicy]
	claims *claims.Registry
	seal   *seal.Seal // nil: documents are stored unsealed
}

// close seals a document that contains secrets, if the relay has a secret of its own. Such a
// document is a list, as package policy writes it. Sealed, it is stored as a string, which
// versions that cannot open it do not accept as a document. open undoes close.
func (p *Policies) close(v StoredPolicy) StoredPolicy {
	if p.seal != nil && bytes.HasPrefix(v.Document, []byte("[")) {
		v.Document, _ = json.Marshal(p.seal.Close(policySealName(v.Target), v.Document)) // a byte slice always marshals
	}
	return v
}

func (p *Policies) open(v StoredPolicy) StoredPolicy {
	if !bytes.HasPrefix(v.Document, []byte(`"`)) {
		return v
	}
	var sealed []byte
	if v.Fault = json.Unmarshal(v.Document, &sealed); v.Fault == nil && !seal.Is(sealed) {
		v.Fault = errors.New("it is sealed in a way that this version does not know")
	}
	v.Document = nil
	if v.Fault == nil {
		v.Document, v.Fault = p.seal.Open(policySealName(v.Target), sealed)
	}
	return v
}

// policySealName returns the name under which a policy's document is sealed. No setting has
// such a name.
func policySealName(target string) string { return "policy/" + target }

// sealAll seals what was stored before the relay had a secret.
func (p *Policies) sealAll(ctx context.Context) error {
	if p.seal == nil {
		return nil
	}
	for _, v := range p.table.List() {
		if bytes.Equal(p.close(v).Document, v.Document) {
			continue
		}
		_, err := p.table.Change(ctx, v.Target, func(v StoredPolicy, exists bool) (StoredPolicy, error) {
			if !exists {
				return v, bucket.ErrNotFound
			}
			return p.close(v), nil // Changed stays the same, since the policy does
		})
		if err != nil && !errors.Is(err, bucket.ErrNotFound) {
			return fmt.Errorf("seal the policy of %s: %w", v.Target, err)
		}
	}
	return nil
}

// Get returns the policy of a target.
func (p *Policies) Get(target string) (StoredPolicy, bool) {
	v, _, ok := p.table.Get(target)
	return p.open(v), ok
}

// Revision returns the revision of the target's policy that is in force, or 0 if there is
// none.
func (p *Policies) Revision(target string) uint64 { return p.table.Revision(target) }

// Knows reports whether what was written for a target's policy, up to a revision of the given
// store, is in force. If this store has replaced that one, Knows reports whether there is a
// policy, since revisions of the other store will never appear here.
func (p *Policies) Knows(target, store string, rev uint64) bool {
	if own := p.table.Store(); store != "" && own != "" && store != own {
		return p.Revision(target) > 0
	}
	return p.table.Knows(target, rev)
}

// CatchUp returns once everything written up to a revision is in force, or fails if that
// cannot be achieved within ctx.
func (p *Policies) CatchUp(ctx context.Context, rev uint64) error { return p.table.CatchUp(ctx, rev) }

// List returns all policies, sorted by target.
func (p *Policies) List() []StoredPolicy {
	list := []StoredPolicy{}
	p.table.Each(func(_ string, v StoredPolicy) bool { list = append(list, p.open(v)); return true })
	slices.SortFunc(list, func(a, b StoredPolicy) int { return natural.Compare(a.Target, b.Target) })
	return list
}

// Set stores the policy of a target and replaces any other.
func (p *Policies) Set(ctx context.Context, target string, document []byte) error {
	return p.SetBy(ctx, target, document, "", nil)
}

// SetBy is Set on behalf of a client, or of the operator if by is "". If against returns an
// error for the existing policy, SetBy changes nothing and returns that error.
func (p *Policies) SetBy(ctx context.Context, target string, document []byte, by string, against table.Against[StoredPolicy]) error {
	return p.Change(ctx, target, by, func(StoredPolicy, bool) ([]byte, error) { return document, nil }, against)
}

// Change is SetBy with a policy that f makes from the existing one. f may be called more than
// once.
func (p *Policies) Change(ctx context.Context, target, by string, f func(v StoredPolicy, exists bool) ([]byte, error), against table.Against[StoredPolicy]) error {
	claim, _ := p.claims.Get(target)
	return p.table.Unless(ctx, target, against, func(against table.Against[StoredPolicy]) error {
		_, err := p.table.Change(ctx, target, func(v StoredPolicy, exists bool) (StoredPolicy, error) {
			if err := against(v, exists); err != nil {
				return v, err
			}
			document, err := f(p.open(v), exists)
			if err != nil {
				return v, err
			}
			return p.close(StoredPolicy{Target: target, Document: document, Changed: nextTime(v.Changed), ClientID: claim.ClientID, By: by, Claims: v.Claims}), nil
		})
		return err
	})
}

// Claimed makes sure that a policy does not belong to a client other than the one that has
// just claimed the target. fresh says that the client did not have the target before; the
// existing policy then stays until it is deleted by somebody who knows of the claim.
func (p *Policies) Claimed(ctx context.Context, target, clientID string, fresh bool) error {
	for seen := (bucket.Contest{}); ; {
		v, rev, ok := p.table.Get(target)
		if err := seen.Next(ctx, rev); err != nil {
			return err
		}
		if !ok || v.ClientID == clientID && !fresh {
			return nil
		}
		var err error
		if v.ClientID == "" || v.ClientID == clientID {
			v.ClientID = clientID
			v.Claims++
			err = p.table.Update(ctx, target, v, rev)
		} else {
			err = p.table.Remove(ctx, target, rev)
		}
		if !errors.Is(err, bucket.ErrConflict) {
			return err
		}
		if _, err := p.table.Refresh(ctx, target); err != nil {
			return err
		}
	}
}

// PutBack stores a deleted policy again, unless there is a new one.
func (p *Policies) PutBack(ctx context.Context, v StoredPolicy) error {
	err := p.table.Create(ctx, v.Target, p.close(v))
	if errors.Is(err, bucket.ErrExists) {
		return nil
	}
	return err
}

// Ownerless returns the policies that a client has set for targets that nobody claims now,
// oldest first, as they are stored.
func (p *Policies) Ownerless(clientID string) []StoredPolicy {
	var all []StoredPolicy
	p.table.Each(func(_ string, v StoredPolicy) bool {
		if v.By == clientID {
			all = append(all, v)
		}
		return true
	})
	all = slices.DeleteFunc(all, func(v StoredPolicy) bool {
		_, claimed := p.claims.Get(v.Target)
		return claimed
	})
	slices.SortFunc(all, func(a, b StoredPolicy) int { return a.Changed.Compare(b.Changed) })
	return all
}

// DropClient removes the policies of a client's targets.
func (p *Policies) DropClient(ctx context.Context, id string) error {
	for _, v := range p.List() {
		if v.ClientID == id {
			if err := p.Delete(ctx, v.Target); err != nil && !errors.Is(err, bucket.ErrNotFound) {
				return err
			}
		}
	}
	return nil
}

// Delete removes the policy of a target, or returns ErrNotFound.
func (p *Policies) Delete(ctx context.Context, target string) error { return p.table.Drop(ctx, target) }

// DeleteUnless is Delete with a check. If against returns an error for the existing policy,
// DeleteUnless removes nothing and returns that error.
func (p *Policies) DeleteUnless(ctx context.Context, target string, against table.Against[StoredPolicy]) error {
	return p.table.Unless(ctx, target, against, func(against table.Against[StoredPolicy]) error { return p.table.DropUnless(ctx, target, against) })
}

// OnValues calls f with every policy, returns, and from then on calls f after every change, by
// this node or another. f must not block.
func (p *Policies) OnValues(f func(target string, v StoredPolicy, exists bool)) {
	p.table.OnValues(func(target string, v StoredPolicy, exists bool) { f(target, p.open(v), exists) })
}
