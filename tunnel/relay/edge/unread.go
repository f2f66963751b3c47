package edge

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
)

// What an origin has sent by HTTP/2 and a visitor has not taken waits in the memory
// of net/http's transport, up to answerWindow for each answer, which the memory of
// sessions does not know of. It has the same bounds: beyond them those answers are
// given up that have waited for their visitors longest.
const (
	answerWindow  = 512 << 10
	unreadOfAgent = 64 << 20
	unreadOfAll   = 1 << 30     // where there is as much memory
	unreadEvery   = time.Second // is how often it is looked
	// slowVisitor is how long a visitor may take for one piece of an answer, and an
	// origin for one of a request, where the agent has too much unread, and
	// slowOfAll where all together have.
	slowVisitor = 30 * time.Second
	slowOfAll   = time.Second
)

// room is how many bytes may wait.
type room struct{ ofAgent, ofAll int64 }

// roomOf gives each agent a share of memory that others can spare.
func roomOf(memory int64) room { return room{ofAgent: min(unreadOfAgent, memory/4), ofAll: memory} }

// unread is the answers by HTTP/2 that are under way.
type unread struct {
	room room

	mu      sync.Mutex
	all     map[*answer]struct{}
	givenUp atomic.Uint64
}

// answer is the body of one.
type answer struct {
	io.ReadCloser
	of     *unread
	agent  *Agent
	giveUp func()
	// away is since when it is not read, by monotime.Now; 0: it is, and nothing of
	// it waits.
	away atomic.Int64
}

// follow returns resp's body, which the visitor is to have. giveUp ends the visit.
func (u *unread) follow(resp *http.Response, agent *Agent, giveUp func()) io.ReadCloser {
	a := &answer{ReadCloser: resp.Body, of: u, agent: agent, giveUp: giveUp}
	a.away.Store(int64(monotime.Now()))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[*answer]struct{})
	}
	u.all[a] = struct{}{}
	return a
}

func (a *answer) Read(b []byte) (int, error) {
	a.away.Store(0)
	n, err := a.ReadCloser.Read(b)
	a.away.Store(int64(monotime.Now()))
	return n, err
}

func (a *answer) Close() error {
	a.of.mu.Lock()
	delete(a.of.all, a)
	a.of.mu.Unlock()
	return a.ReadCloser.Close()
}

// relieveMemory gives up visits that hold too much of it until ctx ends.
func (e *Edge) relieveMemory(ctx context.Context) {
	tick := time.NewTicker(unreadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.unread.relieve(monotime.Now())
			e.untaken.relieve(monotime.Now())
			e.admission.TellOfSpared()
		}
	}
}

// relieve gives up so many answers that what may be unread is within its bounds.
func (u *unread) relieve(now time.Duration) {
	var list []waiting
	u.mu.Lock()
	for a := range u.all {
		if away := time.Duration(a.away.Load()); away != 0 {
			list = append(list, waiting{away, a.agent, answerWindow, a.giveUp})
		}
	}
	u.mu.Unlock()
	u.givenUp.Add(u.room.relieve(list, now))
}

// waiting is what one visit may hold in memory, and since when nobody takes of it.
type waiting struct {
	away   time.Duration
	agent  *Agent // nil: none was picked yet
	size   int64
	giveUp func()
}

// relieve gives up those that have waited longest until the rest has room, and returns
// how many.
func (r room) relieve(list []waiting, now time.Duration) (givenUp uint64) {
	slices.SortFunc(list, func(a, b waiting) int { return cmp.Compare(a.away, b.away) })
	all, ofAgent := int64(0), make(map[*Agent]int64)
	for _, w := range list {
		all += w.size
		ofAgent[w.agent] += w.size
	}
	for _, w := range list {
		waited := now - w.away
		tooMuch := all > r.ofAll && waited >= slowOfAll ||
			w.agent != nil && ofAgent[w.agent] > r.ofAgent && waited >= slowVisitor
		if tooMuch && w.size > 0 {
			all -= w.size
			ofAgent[w.agent] -= w.size
			givenUp++
			w.giveUp()
		}
	}
	return givenUp
}

// GivenUp is how many visits were ended because too much of their answers was
// unread, or of their requests.
func (e *Edge) GivenUp() uint64 { return e.unread.givenUp.Load() + e.untaken.givenUp.Load() }
