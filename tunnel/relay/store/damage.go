package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"adit/tunnel/relay/store/claims"
	"adit/tunnel/relay/store/inventory"
)

// shownFaults is how many faults an error lists.
const shownFaults = 5

// refuseDamaged returns an error if the store has lost something since it was last used:
// without its policy, a tunnel would be open to everybody. Otherwise it keeps the inventory up
// to date until life ends.
func (s *Store) refuseDamaged(ctx, life context.Context, cfg Config) error {
	path := filepath.Join(cfg.Dir, inventory.File)
	list := inventory.New(path, s.log)
	list.Add("clients", s.Clients.table, nil)
	list.Add("claims", s.Claims.Table(), nil)
	list.Add("policies", s.Policies.table, nil)
	list.Add("proofs", s.Proofs.table, nil)
	list.Add("sinks", s.Sinks.table, nil)
	list.Add("operators", s.Operators.table, passing)
	list.Add("ended", s.Ended.table, nil)
	faults, err := list.Check(ctx)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return fmt.Errorf("the store in the data folder %s is damaged, or parts of it are from another time: %s; bring a backup back with adit relay restore, "+
			"into an empty data folder, or remove %s to go on with what is left", cfg.Dir, told(faults), path)
	}
	s.work.Go(func() { list.Keep(life) })
	return nil
}

// unread explains the error of a store that was not read in time. A server in this process
// does not report that a damaged value stops it from reading.
func (s *Store) unread(err error, cfg Config) error {
	if !s.engine.Alone() || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w; the machine is too busy, or the store in the data folder %s is damaged: start the relay again, and if that does not help "+
		"bring a backup back with adit relay restore, into an empty data folder", err, cfg.Dir)
}

// told describes the faults, the most important first.
func told(faults []inventory.Fault) string {
	order := []string{"policies", "clients", "operators", "claims", "proofs", "sinks", "ended"}
	slices.SortStableFunc(faults, func(a, b inventory.Fault) int {
		return slices.Index(order, a.Table) - slices.Index(order, b.Table)
	})
	var said []string
	for _, f := range faults[:min(len(faults), shownFaults)] {
		what := map[inventory.Kind]string{
			inventory.Gone: "is gone", inventory.Older: "is older than it was", inventory.Back: "was removed, and is there again",
		}[f.Kind]
		said = append(said, nameOf(f)+" "+what)
	}
	if more := len(faults) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("so it is with %d more", more))
	}
	return strings.Join(said, ", ")
}

// nameOf returns an operator's name for a value of the store.
func nameOf(f inventory.Fault) string {
	key := f.Key
	switch f.Table {
	case "policies", "claims":
		if name := claims.DomainOf(key); name != "" {
			key = name
		} else if client, name, ok := claims.PrivateOf(key); ok {
			key = client + "/" + name
		}
	case "operators":
		if name, ok := strings.CutPrefix(key, accountPrefix); ok {
			return "the console's account " + name
		}
		return "what the console keeps as " + key
	}
	return map[string]string{
		"clients": "the client ", "policies": "the policy of ", "claims": "the claim of ", "proofs": "the proof of ",
		"sinks": "the sink ", "ended": "the end of a visitor's sign-ins, number ",
	}[f.Table] + key
}
