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
	mu    sync.Mutex
	fresh map[string]*sighting // by client id
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

// errorsOf are those that are not yet stored.
func (v *seen) errorsOf(clientID string) []store.ClientError {
	v.mu.Lock()
	defer v.mu.Unlock()
	if f := v.fresh[clientID]; f != nil {
		return append([]store.ClientError(nil), f.errors...)
	}
	return nil
}

// keep takes back what could not be stored, as the older part.
func (v *seen) keep(clientID string, old *sighting) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.of(clientID)
	if f.seen.At.Before(old.seen.At) {
		f.seen = old.seen
	}
	f.errors = append(old.errors, f.errors...)
	f.errors = f.errors[max(0, len(f.errors)-store.MaxErrors):]
}

// flush stores what was gathered. What cannot be stored now, such as when ctx
// ends in the middle, is for the next flush.
func (v *seen) flush(ctx context.Context, r *Relay) {
	v.mu.Lock()
	fresh := v.fresh
	v.fresh = nil
	v.mu.Unlock()
	for id, f := range fresh {
		if err := r.store.Activities.Note(ctx, id, f.seen, f.errors); err != nil {
			v.keep(id, f)
			if ctx.Err() == nil {
				r.log.Warn("note where a client was seen", "client_id", id, "error", err)
			}
		}
	}
}

func (s *session) sighting(connected bool) store.Seen {
	return store.Seen{
		At: time.Now().UTC(), Connected: connected, Node: s.relay.node, Address: s.link.RemoteAddr().String(),
		Transport: string(s.link.Transport()), Version: s.hello.Version, OS: s.hello.OS, Arch: s.hello.Arch,
		Hostname: s.hello.Hostname, Instance: s.hello.Instance,
	}
}
