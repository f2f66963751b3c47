// Package activity collects and stores where clients' agents were seen and what the
// agents reported.
package activity

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"adit/tunnel/relay/store"
	"adit/tunnel/relay/store/bucket"
	"adit/tunnel/wire"
)

// Store keeps what was collected: *store.Activities.
type Store interface {
	Get(clientID string) (store.Activity, bool)
	Note(ctx context.Context, clientID string, seen store.Seen, errs []store.ClientError) error
}

// Notes is what was collected at a node.
type Notes struct {
	store Store
	node  string
	log   *slog.Logger

	mu      sync.Mutex
	fresh   map[string]*sighting // by client id
	storing map[string]*sighting // what Flush is about to store; never modified
}

// New returns empty notes.
func New(s Store, node string, log *slog.Logger) *Notes {
	return &Notes{store: s, node: node, log: log}
}

type sighting struct {
	seen   store.Seen
	errors []store.ClientError
}

func (v *Notes) of(clientID string) *sighting {
	if v.fresh == nil {
		v.fresh = make(map[string]*sighting)
	}
	if v.fresh[clientID] == nil {
		v.fresh[clientID] = &sighting{}
	}
	return v.fresh[clientID]
}

// Saw records where a client's agent is, or was until now.
func (v *Notes) Saw(clientID string, now store.Seen) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of(clientID).seen = now
}

// Report adds what a client's agent reported.
func (v *Notes) Report(clientID string, list []wire.AgentError) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.of(clientID)
	for _, e := range list {
		f.errors = append(f.errors, store.ClientError{Time: e.Time.UTC(), Key: e.Key, Message: e.Message, Node: v.node})
	}
	f.errors = f.errors[max(0, len(f.errors)-store.MaxErrors):]
}

// Errors returns what a client's agents reported, oldest first.
func (v *Notes) Errors(clientID string) []store.ClientError {
	fresh := v.unstored(clientID) // read first: what is stored in the meantime is then in both, not in neither
	a, _ := v.store.Get(clientID)
	list := slices.Clone(a.Errors)
	for _, e := range fresh {
		if !slices.ContainsFunc(a.Errors, e.Equal) {
			list = append(list, e)
		}
	}
	return list
}

// unstored returns the errors that may not be stored yet, oldest first.
func (v *Notes) unstored(clientID string) []store.ClientError {
	v.mu.Lock()
	defer v.mu.Unlock()
	var list []store.ClientError
	for _, m := range []map[string]*sighting{v.storing, v.fresh} {
		if f := m[clientID]; f != nil {
			list = append(list, f.errors...)
		}
	}
	return list
}

// Flush stores what was collected. Whatever cannot be stored now is kept for the next
// time; once the store turns out to be unavailable, so is the rest. Only one Flush may
// run at a time.
func (v *Notes) Flush(ctx context.Context) {
	v.mu.Lock()
	v.storing, v.fresh = v.fresh, nil
	v.mu.Unlock()
	away := false
	for id, f := range v.storing { // which only Flush replaces
		if away {
			v.stored(id, false)
			continue
		}
		err := v.store.Note(ctx, id, f.seen, f.errors)
		if err != nil {
			v.log.Warn("note where a client was seen", "client_id", id, "error", err)
			away = bucket.IsAway(err) || bucket.IsFull(err) || errors.Is(err, bucket.ErrLost)
		}
		v.stored(id, err == nil)
	}
}

// stored forgets what was stored about a client, or keeps it for the next Flush if done
// is false.
func (v *Notes) stored(clientID string, done bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.storing[clientID]
	delete(v.storing, clientID)
	if done {
		return
	}
	if later := v.of(clientID); later.seen.At.IsZero() {
		later.seen = f.seen
	}
	later := v.fresh[clientID]
	later.errors = append(f.errors, later.errors...)
	later.errors = later.errors[max(0, len(later.errors)-store.MaxErrors):]
}
