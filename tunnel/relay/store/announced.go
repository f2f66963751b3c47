package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"adit/internal/monotime"
)

// announceSubject is where nodes announce themselves that the store has no room for.
const announceSubject = "adit.node"

// announced are the nodes that announce themselves, each for NodeLease: they are listed as
// if the store had their entries.
type announced struct {
	mu      sync.Mutex
	byID    map[string]announcement
	held    time.Duration // since when nobody can be heard, by monotime.Now; 0: who is there can be
	changed []func()
}

// forgetAnnounced is how long a node is remembered that was heard last so long ago: longer
// than it may take to find out that NATS is not reached.
const forgetAnnounced = 4 * NodeLease

type announcement struct {
	Node
	at time.Duration // when it was heard, by clock
}

// onChange calls f after every announcement. f must not wait.
func (a *announced) onChange(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = append(a.changed[:len(a.changed):len(a.changed)], f)
}

// take takes in what a node says of itself.
func (a *announced) take(v Node) {
	a.mu.Lock()
	if a.byID == nil {
		a.byID = make(map[string]announcement)
	}
	a.byID[v.ID] = announcement{v, a.clock()}
	listeners := a.changed
	a.mu.Unlock()
	for _, f := range listeners {
		f()
	}
}

// drop forgets what a node said: the store has its entry again.
func (a *announced) drop(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byID, id)
}

// hold says whether nobody can be heard now. Until it is so no more, nobody is taken for
// silent: who was heard last is listed, as are those that have entries.
func (a *announced) hold(away bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if away == (a.held != 0) {
		return
	}
	now := monotime.Now()
	for id, v := range a.byID {
		if !away {
			v.at += now - a.held
		} else if now-v.at <= forgetAnnounced {
			v.at = now
		}
		a.byID[id] = v
	}
	if a.held = 0; away {
		a.held = now
	}
}

// clock is the time that goes on while nodes can be heard.
func (a *announced) clock() time.Duration { return cmp.Or(a.held, monotime.Now()) }

// over puts what nodes said in place of what the store has of them, which is older. A store
// without room has no entry run out, so that of a node that is silent by now is left out.
func (a *announced) over(list map[string]Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, v := range a.byID {
		_, kept := list[id]
		switch silent := a.clock() - v.at; {
		case silent <= NodeLease:
			list[id] = v.Node
		case kept:
			delete(list, id)
		case silent > forgetAnnounced:
			delete(a.byID, id)
		}
	}
}

// heed has what the connection tells of NATS be known until ctx ends.
func (a *announced) heed(ctx context.Context, conn *nats.Conn) {
	told := conn.StatusChanged(nats.CONNECTED, nats.RECONNECTING)
	defer conn.RemoveStatusListener(told)
	for {
		a.hold(!conn.IsConnected())
		select {
		case <-told:
		case <-ctx.Done():
			return
		}
	}
}

// announce tells all nodes that listen now of v.
func announce(conn *nats.Conn, v Node) {
	if text, err := json.Marshal(v); err == nil {
		_ = conn.Publish(announceSubject, text) // it is told again with the next try to renew it
	}
}

// listen takes announcements, this node's too, until the connection ends.
func (a *announced) listen(conn *nats.Conn) error {
	_, err := conn.Subscribe(announceSubject, func(m *nats.Msg) {
		var v Node
		if json.Unmarshal(m.Data, &v) == nil && v.ID != "" {
			a.take(v)
		}
	})
	if err != nil {
		return fmt.Errorf("listen to other nodes: %w", err)
	}
	return nil
}
