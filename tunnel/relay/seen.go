package relay

import (
	"context"
	"sync"
	"time"

	"adit/tunnel/relay/store"
	"adit/tunnel/wire"
)

// seen gathers where agents were seen and what they reported, to be stored.
type seen struct {
	mu      sync.Mutex
	fresh   map[string]*sighting // by client id
	storing map[string]*sighting // what flush is about to store; nobody changes it
}

type sighting struct {
	seen   store.Seen
	errors []store.ClientError
}

func (v *seen) of(clientID string) *sighting {
	if v.fresh == nil {
		v.fresh = make(map[string]*sighting)
	}
	if v.fresh[clientID] == nil {
		v.fresh[clientID] = &sighting{}
	}
	return v.fresh[clientID]
}

// note says that a session has begun or ended.
func (v *seen) note(s *session, connected bool) {
	now := s.sighting(connected)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.of(s.client.ID).seen = now
}

// complain adds what an agent reported.
func (v *seen) complain(s *session, list []wire.AgentError) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.of(s.client.ID)
	for _, e := range list {
		f.errors = append(f.errors, store.ClientError{Time: e.Time.UTC(), Key: e.Key, Message: e.Message, Node: s.relay.node})
	}
	f.errors = f.errors[max(0, len(f.errors)-store.MaxErrors):]
}

// errorsOf are those that may not be stored yet, oldest first.
func (v *seen) errorsOf(clientID string) []store.ClientError {
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

// flush stores what was gathered. What cannot be stored now is kept for the next
// time; once the store is found to be away, so is the rest. One flush runs at a time.
func (v *seen) flush(ctx context.Context, r *Relay) {
	v.mu.Lock()
	v.storing, v.fresh = v.fresh, nil
	v.mu.Unlock()
	away := false
	for id, f := range v.storing { // which only flush replaces
		if away {
			v.stored(id, false)
			continue
		}
		err := r.store.Activities.Note(ctx, id, f.seen, f.errors)
		if err != nil {
			r.log.Warn("note where a client was seen", "client_id", id, "error", err)
			away = store.IsAway(err)
		}
		v.stored(id, err == nil)
	}
}

// stored forgets what was stored of a client, or keeps it for the next flush.
func (v *seen) stored(clientID string, done bool) {
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

func (s *session) sighting(connected bool) store.Seen {
	return store.Seen{
		At: time.Now().UTC(), Connected: connected, Node: s.relay.node, Address: s.link.RemoteAddr().String(),
		Transport: string(s.link.Transport()), Version: s.hello.Version, OS: s.hello.OS, Arch: s.hello.Arch,
		Hostname: s.hello.Hostname, Instance: s.hello.Instance,
	}
}
