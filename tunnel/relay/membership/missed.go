package membership

import (
	"maps"
	"slices"
	"time"

	"adit/tunnel/relay/store"
)

const (
	missedTime = 24 * time.Hour
	missedMost = 64 // a node that starts in an empty folder each time has a new id each time
)

// Missed is a node that disappeared without notice: its lease ended, it does not answer,
// and it had not announced that it would shut down.
type Missed struct {
	store.Node
	Since time.Time // when this node noticed
}

// missing holds the nodes that are missed, and those that announced that they are
// shutting down.
type missing struct {
	missed map[string]Missed
	ending map[string]string // boots by id
}

// there records that a node is listed.
func (m *missing) there(id string) { delete(m.missed, id) }

// ends records that a node has announced that it is shutting down.
func (m *missing) ends(n store.Node) { m.ending[n.ID] = n.Boot }

// gone records that a node is no longer listed and does not answer.
func (m *missing) gone(n store.Node) {
	boot, said := m.ending[n.ID]
	delete(m.ending, n.ID)
	if said && boot == n.Boot {
		return
	}
	m.missed[n.ID] = Missed{n, time.Now()}
	if len(m.missed) > missedMost {
		delete(m.missed, m.list()[0].ID)
	}
}

// list returns the nodes that are missed, oldest first.
func (m *missing) list() []Missed {
	maps.DeleteFunc(m.missed, func(_ string, n Missed) bool { return time.Since(n.Since) > missedTime })
	return slices.SortedFunc(maps.Values(m.missed), func(a, b Missed) int { return a.Since.Compare(b.Since) })
}

// Missed returns the nodes that disappeared without notice in the last day, oldest first,
// as far as this node was there to notice.
func (m *Members) Missed() []Missed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.missing.list()
}
