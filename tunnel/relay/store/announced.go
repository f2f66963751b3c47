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

// announceSubject is where nodes announce themselves when the store has no room for their
// entries.
const announceSubject = "adit.node"

// announced holds the nodes that announce themselves, each for NodeLease. They are listed as
// if the store had their entries.
type announced struct {
	mu      sync.Mutex
	byID    map[string]announcement
	held    time.Duration // since when no node can be heard, by monotime.Now; 0: they can be heard
	changed []func()
}

// forgetAnnounced is how long a node is remembered after it was last heard. It is longer than
// it may take to notice that NATS cannot be reached.
const forgetAnnounced = 4 * NodeLease

type announcement struct {
	Node
	at time.Duration // when it was heard, by clock
}

// onChange calls f after every announcement. f must not block.
func (a *announced) onChange(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = append(a.changed[:len(a.changed):len(a.changed)], f)
}

// take records an announcement.
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

// drop forgets a node's announcement, because the store has its entry again.
func (a *announced) drop(id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byID, id)
}

// hold sets whether no node can be heard at the moment. While that is so, no node is
// considered silent: those heard last remain listed, as do those with entries.
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

// clock is a clock that stands still while nodes cannot be heard.
func (a *announced) clock() time.Duration { return cmp.Or(a.held, monotime.Now()) }

// over replaces the store's entries with what nodes have announced, which is newer. Entries do
// not expire in a store without room, so the entry of a node that has since gone silent is
// removed.
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

// heed follows the state of the connection to NATS until ctx ends.
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

// announce tells all listening nodes about v.
func announce(conn *nats.Conn, v Node) {
	if text, err := json.Marshal(v); err == nil {
		_ = conn.Publish(announceSubject, text) // repeated with the next attempt to renew the entry
	}
}

// listen receives announcements, including this node's, until the connection ends.
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
