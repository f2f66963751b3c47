package nodes

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Operations of a line.
const (
	opSession   = "session"   // Agent came
	opGone      = "gone"      // Session ended, and its tunnels with it
	opTunnel    = "tunnel"    // Tunnel came or changed
	opWithdrawn = "withdrawn" // the tunnel Key of Session ended
	opWhole     = "whole"     // all that there was when the table was asked for has been told
	opChanged   = "changed"   // Change was written to the store
	opDrain     = "drain"     // the node ends: what is elsewhere too is better asked there
	opStore     = "store"     // the node reaches the store no more, if Away, or again
)

// line is one line of a node's table.
type line struct {
	Op      string  `json:"op"`
	Agent   *Agent  `json:"agent,omitempty"`
	Tunnel  *Tunnel `json:"tunnel,omitempty"`
	Session string  `json:"session,omitempty"`
	Key     string  `json:"key,omitempty"`
	// Slot is that of a Tunnel that changes headers, which has none itself: a node
	// of before that finds no claim of it, and so serves nobody without the changes.
	// PathsSlot is in its place where a Tunnel has paths, which not every node knows
	// that knows of headers.
	Slot      string `json:"slot,omitempty"`
	PathsSlot string `json:"paths_slot,omitempty"`

	Change json.RawMessage `json:"change,omitempty"`
	Age    int64           `json:"age,omitempty"` // of a Change of before, in milliseconds
	Away   bool            `json:"away,omitempty"`
}

// tunnelLine tells of v.
func tunnelLine(v Tunnel) line {
	l := line{Op: opTunnel, Tunnel: &v}
	switch {
	case len(v.Claim.Paths) > 0:
		l.PathsSlot, v.Slot = v.Slot, ""
	case v.Claim.ChangesHeaders():
		l.Slot, v.Slot = v.Slot, ""
	}
	return l
}

// told is the tunnel that a line tells of.
func (l *line) told() Tunnel {
	v := *l.Tunnel
	switch {
	case v.Slot != "":
	case len(v.Claim.Paths) > 0:
		v.Slot = l.PathsSlot
	case v.Claim.ChangesHeaders():
		v.Slot = l.Slot
	}
	return v
}

// newLines returns what writes lines. It makes them no longer than need be, since
// of maxLine a claim's headers may have half.
func newLines(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// maxBehind is how many lines a node may be behind before it must read the table anew.
const maxBehind = 1 << 17

// table is what this node has, and who follows it.
type table struct {
	mu       sync.Mutex
	agents   map[string]Agent
	tunnels  map[string]map[string]Tunnel // session → key
	draining bool
	away     bool // the store is, from this node
	recent   recent
	readers  map[*reader]struct{}
}

// reader follows a table.
type reader struct {
	more chan struct{} // room for one

	mu    sync.Mutex
	lines []line
	lost  bool // it is too far behind
}

func (r *reader) add(l line) {
	r.mu.Lock()
	if len(r.lines) >= maxBehind {
		r.lost, r.lines = true, nil
	}
	if !r.lost {
		r.lines = append(r.lines, l)
	}
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// take returns what is new; ok is false if something was lost.
func (r *reader) take() (lines []line, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines, r.lines = r.lines, nil
	return lines, !r.lost
}

// follow returns a reader that begins with all that there is, and with the changes
// of the store that were told of lately.
func (t *table) follow() *reader {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &reader{more: make(chan struct{}, 1)}
	for _, a := range t.agents {
		r.lines = append(r.lines, line{Op: opSession, Agent: &a})
	}
	for _, of := range t.tunnels {
		for _, v := range of {
			r.lines = append(r.lines, tunnelLine(v))
		}
	}
	r.lines = append(r.lines, t.recent.lines()...)
	if t.draining {
		r.lines = append(r.lines, line{Op: opDrain})
	}
	if t.away {
		r.lines = append(r.lines, line{Op: opStore, Away: true})
	}
	r.lines = append(r.lines, line{Op: opWhole})
	r.more <- struct{}{}
	if t.readers == nil {
		t.readers = make(map[*reader]struct{})
	}
	t.readers[r] = struct{}{}
	return r
}

func (t *table) unfollow(r *reader) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.readers, r)
}

// change applies f and tells the line that it returns, in the order of changes.
func (t *table) change(f func() (line, bool)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.agents == nil {
		t.agents, t.tunnels = make(map[string]Agent), make(map[string]map[string]Tunnel)
	}
	l, told := f()
	if !told {
		return
	}
	for r := range t.readers {
		r.add(l)
	}
}

func (t *table) agent(a Agent) {
	t.change(func() (line, bool) {
		t.agents[a.Session] = a
		return line{Op: opSession, Agent: &a}, true
	})
}

// client is the id of the client whose session it is; empty: there is no such session.
func (t *table) client(session string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.agents[session].ClientID
}

func (t *table) gone(session string) {
	t.change(func() (line, bool) {
		_, ok := t.agents[session]
		delete(t.agents, session)
		delete(t.tunnels, session)
		return line{Op: opGone, Session: session}, ok
	})
}

// up takes a tunnel of an agent that is there.
func (t *table) up(v Tunnel) {
	t.change(func() (line, bool) {
		if _, ok := t.agents[v.Session]; !ok {
			return line{}, false
		}
		if t.tunnels[v.Session] == nil {
			t.tunnels[v.Session] = make(map[string]Tunnel)
		}
		t.tunnels[v.Session][v.Key] = v
		return tunnelLine(v), true
	})
}

func (t *table) down(session, key string) {
	t.change(func() (line, bool) {
		_, ok := t.tunnels[session][key]
		delete(t.tunnels[session], key)
		return line{Op: opWithdrawn, Session: session, Key: key}, ok
	})
}

// tell tells of a change of the store to those who follow.
func (t *table) tell(change []byte) {
	t.change(func() (line, bool) {
		t.recent.add(change, 0)
		return line{Op: opChanged, Change: change}, true
	})
}

// heard keeps a change that another node told of, for those who come later.
func (t *table) heard(change []byte, age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent.add(change, age)
}

func (t *table) storeAway(away bool) {
	t.change(func() (line, bool) {
		was := t.away
		t.away = away
		return line{Op: opStore, Away: away}, was != away
	})
}

func (t *table) drain() {
	t.change(func() (line, bool) {
		was := t.draining
		t.draining = true
		return line{Op: opDrain}, !was
	})
}
