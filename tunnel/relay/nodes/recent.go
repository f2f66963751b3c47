package nodes

import (
	"slices"
	"time"

	"adit/internal/monotime"
)

// How many changes to the store a node keeps for nodes that come later. A node that has
// just started may be using a server of the cluster that lags behind, when no other can
// be asked.
const (
	recentTime  = 15 * time.Minute
	recentCount = 1024
	recentBytes = 1 << 20
)

// recent holds the latest changes to the store: this node's own and those that other
// nodes reported. The zero value is empty.
type recent struct {
	list  []recentChange
	known map[string]struct{}
	bytes int
}

type recentChange struct {
	at     time.Duration // by monotime.Now
	change string
}

// add adds a change of the given age, and drops the oldest ones if there are too many.
func (r *recent) add(change []byte, age time.Duration) {
	c := recentChange{monotime.Now() - age, string(change)}
	if _, ok := r.known[c.change]; ok {
		return
	}
	if r.known == nil {
		r.known = make(map[string]struct{})
	}
	r.known[c.change] = struct{}{}
	r.list = append(r.list, c)
	r.bytes += len(change)
	for len(r.list) > recentCount || r.bytes > recentBytes {
		r.drop(r.list[0])
		r.list = slices.Delete(r.list, 0, 1)
	}
}

func (r *recent) drop(c recentChange) {
	r.bytes -= len(c.change)
	delete(r.known, c.change)
}

// lines returns the changes that are not too old, with their age.
func (r *recent) lines() []line {
	now := monotime.Now()
	r.list = slices.DeleteFunc(r.list, func(c recentChange) bool {
		old := now-c.at > recentTime
		if old {
			r.drop(c)
		}
		return old
	})
	var lines []line
	for _, c := range r.list {
		lines = append(lines, line{Op: opChanged, Change: []byte(c.change), Age: max(1, (now - c.at).Milliseconds())})
	}
	return lines
}
