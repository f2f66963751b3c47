package store

import (
	"context"
	"errors"
	"maps"
	"slices"

	"adit/tunnel/relay/store/bucket"
)

// Kept returns the IDs of the clients for which there is usage, activity or a proof, in no
// particular order.
func (s *Store) Kept() []string {
	ids := make(map[string]bool)
	s.Usages.table.Each(func(id string, _ Usage) bool { ids[id] = true; return true })
	s.Activities.table.Each(func(id string, _ Activity) bool { ids[id] = true; return true })
	s.Proofs.table.Each(func(_ string, p Proof) bool { ids[p.ClientID] = true; return true })
	return slices.Collect(maps.Keys(ids))
}

// Forget removes a client's usage, activity and proofs.
func (s *Store) Forget(ctx context.Context, clientID string) error {
	err := errors.Join(absent(s.Usages.table.Drop(ctx, clientID)), absent(s.Activities.table.Drop(ctx, clientID)))
	for _, p := range s.Proofs.List() {
		if p.ClientID == clientID {
			err = errors.Join(err, s.Proofs.Delete(ctx, p.Domain))
		}
	}
	return err
}

// absent treats a missing value as removed.
func absent(err error) error {
	if errors.Is(err, bucket.ErrNotFound) {
		return nil
	}
	return err
}
