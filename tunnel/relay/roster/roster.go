// Package roster knows which agents are connected, by session, by client and by agent,
// and since when the others have been away. What a session is, and what happens to one
// that is replaced, is up to the caller.
package roster

import (
	"errors"
	"sync"
	"time"
)

// Reasons why a session may not join.
var (
	ErrClosed     = errors.New("nobody may join any more")
	ErrFull       = errors.New("there are as many agents as there may be")
	ErrClientFull = errors.New("the client has as many agents as it may have")
)

// Agent identifies an agent. A client may have several.
type Agent struct{ Client, Instance string }

// Limits limits the sessions. A connected agent may always join again to replace its
// previous session.
type Limits struct {
	Sessions  int
	PerClient int
	Replaced  int // replaced sessions that may linger beyond Sessions
}

// Roster holds the sessions, each of type S. Its zero value with limits is ready for use.
type Roster[S any] struct {
	Limits Limits

	mu       sync.Mutex
	closed   bool
	next     uint64
	byID     map[string]*entry[S]
	byClient map[string]map[string]*entry[S] // by client, then by id
	byAgent  map[Agent]*entry[S]             // the newest session
	away     absence
}

type entry[S any] struct {
	id      string
	agent   Agent
	turn    uint64
	session S
}

// Replaced is a session that another has replaced.
type Replaced[S any] struct {
	Session S
	// Crowded is set if the session must not linger, since too many replaced ones do.
	Crowded bool
}

// Join adds a session of an agent, and returns the one that it replaces, if any. The
// replaced session stays until it leaves. The errors are ErrClosed, ErrFull and
// ErrClientFull.
func (r *Roster[S]) Join(id string, a Agent, s S) (*Replaced[S], error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, of := r.byAgent[a], len(r.byClient[a.Client])
	switch {
	case r.closed:
		return nil, ErrClosed
	case old == nil && len(r.byID) >= r.Limits.Sessions:
		return nil, ErrFull
	case old == nil && of >= r.Limits.PerClient:
		return nil, ErrClientFull
	}
	// Replaced sessions end by themselves, but an agent that joins again and again must
	// not accumulate any number of them.
	crowded := of >= 2*r.Limits.PerClient || len(r.byID) >= r.Limits.Sessions+r.Limits.Replaced
	if r.byID == nil {
		r.byID, r.byClient, r.byAgent = make(map[string]*entry[S]), make(map[string]map[string]*entry[S]), make(map[Agent]*entry[S])
	}
	if r.byClient[a.Client] == nil {
		r.byClient[a.Client] = make(map[string]*entry[S])
	}
	r.next++
	e := &entry[S]{id: id, agent: a, turn: r.next, session: s}
	r.byID[id], r.byClient[a.Client][id], r.byAgent[a] = e, e, e
	r.away.end(a)
	if old == nil {
		return nil, nil
	}
	return &Replaced[S]{old.session, crowded}, nil
}

// Leave removes a session, and reports whether it was the last of its client. If the
// newest session of an agent leaves, the previous one becomes the agent's again.
func (r *Roster[S]) Leave(id string) (last bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.byID[id]
	if e == nil {
		return false
	}
	delete(r.byID, id)
	left := r.byClient[e.agent.Client]
	if delete(left, id); len(left) == 0 {
		delete(r.byClient, e.agent.Client)
	}
	if r.byAgent[e.agent] == e {
		delete(r.byAgent, e.agent)
		for _, o := range left {
			if n := r.byAgent[e.agent]; o.agent == e.agent && (n == nil || o.turn > n.turn) {
				r.byAgent[e.agent] = o
			}
		}
		if r.byAgent[e.agent] == nil {
			r.away.begin(e.agent, time.Now())
		}
	}
	return len(left) == 0
}

// Close stops sessions from joining, and returns those that are there.
func (r *Roster[S]) Close() []S {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	return r.All()
}

// Closed reports whether sessions can no longer join.
func (r *Roster[S]) Closed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

// Len returns how many sessions there are.
func (r *Roster[S]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// All returns the sessions, in no particular order.
func (r *Roster[S]) All() []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sessions(r.byID)
}

// OfClient returns the sessions of a client, in no particular order.
func (r *Roster[S]) OfClient(client string) []S {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sessions(r.byClient[client])
}

func sessions[S any](of map[string]*entry[S]) []S {
	list := make([]S, 0, len(of))
	for _, e := range of {
		list = append(list, e.session)
	}
	return list
}

// Session returns the session with an id, or the zero value if there is none.
func (r *Roster[S]) Session(id string) (s S) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byID[id]; e != nil {
		s = e.session
	}
	return s
}

// Newest returns the newest session of an agent, or the zero value if the agent is not
// connected.
func (r *Roster[S]) Newest(a Agent) (s S) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.byAgent[a]; e != nil {
		s = e.session
	}
	return s
}

// Came records that an agent, which may not be connected here, is connected elsewhere.
func (r *Roster[S]) Came(a Agent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away.end(a)
}

// Left records when an agent's last session elsewhere ended. An agent that is connected
// here is not away.
func (r *Roster[S]) Left(a Agent, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byAgent[a] == nil {
		r.away.begin(a, at)
	}
}

// Away reports whether an agent is not connected here, and since when. since is zero if
// that is not known.
func (r *Roster[S]) Away(a Agent) (away bool, since time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byAgent[a] != nil {
		return false, time.Time{}
	}
	since, _ = r.away.since(a)
	return true, since
}

// Forget drops what is remembered about agents that went away before a given time.
func (r *Roster[S]) Forget(before time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.away.forget(before)
}
