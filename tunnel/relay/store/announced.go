package store

import (
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
	changed []func()
}

type announcement struct {
	Node
	at time.Duration // when it was heard, by monotime.Now
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
	a.byID[v.ID] = announcement{v, monotime.Now()}
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

// over puts what nodes said in place of what the store has of them, which is older. A store
// without room has no entry run out, so that of a node that is silent by now is left out.
func (a *announced) over(list map[string]Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, v := range a.byID {
		switch _, kept := list[id]; {
		case monotime.Now()-v.at <= NodeLease:
			list[id] = v.Node
		case kept:
			delete(list, id)
		default:
			delete(a.byID, id)
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
