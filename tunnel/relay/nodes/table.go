package nodes

import (
	"encoding/json"
	"io"
	"sync"
	"time"
)

// The operations of a line.
const (
	opSession   = "session"   // Agent connected
	opGone      = "gone"      // Session ended, and its tunnels with it
	opTunnel    = "tunnel"    // Tunnel was added or changed
	opWithdrawn = "withdrawn" // the tunnel Key of Session ended
	opWhole     = "whole"     // everything that was there when the table was requested has been sent
	opChanged   = "changed"   // Change was written to the store
	opDrain     = "drain"     // the node is shutting down: prefer other nodes for what they have as well
	opStore     = "store"     // the node can no longer reach the store (Away), or can again
)

// line is one line of a node's table.
type line struct {
	Op      string  `json:"op"`
	Agent   *Agent  `json:"agent,omitempty"`
	Tunnel  *Tunnel `json:"tunnel,omitempty"`
	Session string  `json:"session,omitempty"`
	Key     string  `json:"key,omitempty"`
	// Slot is the slot of a Tunnel that changes headers, which then has no slot itself.
	// An older node finds no claim for such a tunnel, and so serves nobody without the
	// changes. For a Tunnel with paths, PathsSlot is used instead, as not every node that
	// supports header changes supports paths.
	Slot      string `json:"slot,omitempty"`
	PathsSlot string `json:"paths_slot,omitempty"`

	Change json.RawMessage `json:"change,omitempty"`
	Age    int64           `json:"age,omitempty"` // of an earlier Change, in milliseconds
	Away   bool            `json:"away,omitempty"`
}

// tunnelLine returns the line that announces v.
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

// told returns the tunnel that a line announces.
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

// newLines returns an encoder for lines. It keeps them as short as possible, since the
// headers of a claim may take up half of maxLine.
func newLines(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// maxBehind is how many lines a node may be behind before it must read the whole table
// again.
const maxBehind = 1 << 17

// table is what this node has, and who follows it.
type table struct {
	mu       sync.Mutex
	agents   map[string]Agent
	tunnels  map[string]map[string]Tunnel // session → key
	draining bool
	away     bool // the store is unavailable to this node
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

// take returns the new lines. ok is false if any were lost.
func (r *reader) take() (lines []line, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines, r.lines = r.lines, nil
	return lines, !r.lost
}

// follow returns a reader that begins with everything that is there, including recent
// changes to the store.
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

// change applies f and sends the line that it returns, in the order of changes.
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

// client returns the id of the client that a session belongs to, or "" if there is no such
// session.
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

// up adds a tunnel if its agent is there.
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

// tell sends a change to the store to those who follow.
func (t *table) tell(change []byte) {
	t.change(func() (line, bool) {
		t.recent.add(change, 0)
		return line{Op: opChanged, Change: change}, true
	})
}

// heard keeps a change that another node reported, for those who come later.
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
