package membership

import (
	"maps"
	"slices"
	"time"

	"adit/tunnel/relay/store"
)

const (
	missedTime = 24 * time.Hour
	missedMost = 64 // a node that begins in an empty folder each time is another one each time
)

// Missed is a node that went without a word: its lease ended, it does not answer, and it
// had not said that it would end.
type Missed struct {
	store.Node
	Since time.Time // when this node noticed
}

// missing are nodes that are missed, and those that said that they end.
type missing struct {
	missed map[string]Missed
	ending map[string]string // boots by id
}

// there takes in that a node is listed.
func (m *missing) there(id string) { delete(m.missed, id) }

// ends takes in that a node says that it ends.
func (m *missing) ends(n store.Node) { m.ending[n.ID] = n.Boot }

// gone takes in that a node is not listed any more, and does not answer.
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

// list are those that are missed, those first that were missed first.
func (m *missing) list() []Missed {
	maps.DeleteFunc(m.missed, func(_ string, n Missed) bool { return time.Since(n.Since) > missedTime })
	return slices.SortedFunc(maps.Values(m.missed), func(a, b Missed) int { return a.Since.Compare(b.Since) })
}

// Missed are the nodes that went without a word in the last day, as far as this one was
// there to notice, those first that went first.
func (m *Members) Missed() []Missed {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.missing.list()
}
