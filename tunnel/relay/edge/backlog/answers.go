package backlog

import (
	"io"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/monotime"
)

// unread is the set of HTTP/2 answers in progress.
type unread struct {
	room room

	mu      sync.Mutex
	all     map[*answer]struct{}
	givenUp atomic.Uint64
}

// answer is the body of one of them.
type answer struct {
	io.ReadCloser
	of     *unread
	agent  any
	giveUp func()
	// away is the time since which nobody has been reading the body, by monotime.Now. It is 0
	// while somebody reads, when nothing is waiting.
	away atomic.Int64
}

// Answer wraps the body of an origin's answer to a visitor. agent is any value that identifies
// the origin's agent. giveUp ends the visit.
func (b *Backlog) Answer(body io.ReadCloser, agent any, giveUp func()) io.ReadCloser {
	u := &b.unread
	a := &answer{ReadCloser: body, of: u, agent: agent, giveUp: giveUp}
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

// relieve gives up answers until the rest are within the limits.
func (u *unread) relieve(now time.Duration) {
	var list []waiting
	u.mu.Lock()
	for a := range u.all {
		if away := time.Duration(a.away.Load()); away != 0 {
			list = append(list, waiting{away, a.agent, AnswerWindow, a.giveUp})
		}
	}
	u.mu.Unlock()
	u.givenUp.Add(u.room.relieve(list, now))
}
