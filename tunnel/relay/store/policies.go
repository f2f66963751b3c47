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
	// ClientID is whose claim the target was. A policy goes with its client: it
	// is not the next owner's. Empty: nobody's yet; the first to claim has it.
	ClientID string `json:"client_id,omitempty"`
	By       string `json:"by,omitempty"` // the client that set it; empty: the operator
	// Claims rises when the target is claimed anew, so that who is about to delete the
	// policy of a target that nobody has finds another one then.
	Claims int `json:"claims,omitempty"`
	// Fault is why the document could not be opened; there is none then.
	Fault error `json:"-"`
}

// Policies are the documents by target: the key of a Claim.
type Policies struct {
	table  *table.Table[StoredPolicy]
	claims *claims.Registry
	seal   *seal.Seal // nil: documents are kept as they are
}

// close seals a document that has secrets, if the relay has one of its own: it is a
// list, as package policy writes those. In the bucket it is then a text, which is no
// document to versions that cannot open it. open undoes it.
func (p *Policies) close(v StoredPolicy) StoredPolicy {
	if p.seal != nil && bytes.HasPrefix(v.Document, []byte("[")) {
		v.Document, _ = json.Marshal(p.seal.Close(policySealName(v.Target), v.Document)) // bytes have no error
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

// policySealName is what a policy's document is sealed as. No setting is called so.
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
			return p.close(v), nil // Changed stays: it is the same policy
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

// Revision is that of the target's policy that is in force; 0: there is none.
func (p *Policies) Revision(target string) uint64 { return p.table.Revision(target) }

// Knows reports whether what was written of a target's policy up to a revision of a store
// is in force; of a store that this one was made in place of, whether there is a policy:
// its revisions will not be known here.
func (p *Policies) Knows(target, store string, rev uint64) bool {
	if own := p.table.Store(); store != "" && own != "" && store != own {
		return p.Revision(target) > 0
	}
	return p.table.Knows(target, rev)
}

// CatchUp returns when what was written up to a revision is in force, or cannot be had
// within ctx.
func (p *Policies) CatchUp(ctx context.Context, rev uint64) error { return p.table.CatchUp(ctx, rev) }

// List returns all policies by target.
func (p *Policies) List() []StoredPolicy {
	list := []StoredPolicy{}
	p.table.Each(func(_ string, v StoredPolicy) bool { list = append(list, p.open(v)); return true })
	slices.SortFunc(list, func(a, b StoredPolicy) int { return natural.Compare(a.Target, b.Target) })
	return list
}

// Set stores the policy of a target in place of any other.
func (p *Policies) Set(ctx context.Context, target string, document []byte) error {
	return p.SetBy(ctx, target, document, "", nil)
}

// SetBy is Set in the name of a client, or "" for the operator, unless it has
// something against what is there; then it returns that.
func (p *Policies) SetBy(ctx context.Context, target string, document []byte, by string, against table.Against[StoredPolicy]) error {
	return p.Change(ctx, target, by, func(StoredPolicy, bool) ([]byte, error) { return document, nil }, against)
}

// Change is SetBy of what f makes of the policy that it replaces; it may be asked
// more than once.
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

// Claimed sees to it that a policy is not another client's than the one that has just
// claimed the target; fresh, if the client did not have it before. The policy that there
// is then stays until somebody deletes it who knows of the claim.
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

// PutBack stores a policy again that was deleted, unless there is another.
func (p *Policies) PutBack(ctx context.Context, v StoredPolicy) error {
	err := p.table.Create(ctx, v.Target, p.close(v))
	if errors.Is(err, bucket.ErrExists) {
		return nil
	}
	return err
}

// Ownerless returns the policies that a client has set at targets that nobody has
// claimed now, oldest policy first, as they are stored.
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

// DeleteUnless is Delete, unless it has something against what is there; then it
// returns that.
func (p *Policies) DeleteUnless(ctx context.Context, target string, against table.Against[StoredPolicy]) error {
	return p.table.Unless(ctx, target, against, func(against table.Against[StoredPolicy]) error { return p.table.DropUnless(ctx, target, against) })
}

// OnValues calls f with every policy, and then after every change of one, of this
// node or another. It returns between the two. f must not wait.
func (p *Policies) OnValues(f func(target string, v StoredPolicy, exists bool)) {
	p.table.OnValues(func(target string, v StoredPolicy, exists bool) { f(target, p.open(v), exists) })
}
