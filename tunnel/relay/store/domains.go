package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"adit/internal/natural"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/relay/store/table"
)

// Proof says that a client may use a name outside the relay's domain.
type Proof struct {
	Domain   string    `json:"domain"`
	ClientID string    `json:"client_id"`
	Proved   time.Time `json:"proved"`
	By       string    `json:"by"` // ProvedBy…
}

// How a name was proved.
const (
	ProvedByRecord  = "record"  // a DNS record
	ProvedByScope   = "scope"   // the operator's word
	ProvedByUpgrade = "upgrade" // the client had the name before proofs were required
)

// Proofs holds the relay's proofs, by name.
type Proofs struct{ table *table.Table[Proof] }

// Get returns the proof of a name.
func (p *Proofs) Get(domain string) (Proof, bool) {
	v, _, ok := p.table.Get(domain)
	return v, ok
}

// List returns all proofs by name.
func (p *Proofs) List() []Proof {
	list := p.table.List()
	slices.SortFunc(list, func(a, b Proof) int { return natural.Compare(a.Domain, b.Domain) })
	return list
}

// Set stores a proof and replaces any other of the same name.
func (p *Proofs) Set(ctx context.Context, v Proof) error { return p.table.Put(ctx, v.Domain, v) }

// Delete removes a proof. It is not an error if there is none.
func (p *Proofs) Delete(ctx context.Context, domain string) error {
	if err := p.table.Drop(ctx, domain); !errors.Is(err, bucket.ErrNotFound) {
		return err
	}
	return nil
}

// OnChange calls f after every change of a proof. f must not block.
func (p *Proofs) OnChange(f func(domain string, v Proof, exists bool)) { p.table.OnChange(f) }
