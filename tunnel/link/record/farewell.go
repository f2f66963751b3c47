package record

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"adit/internal/udpbatch"
	"adit/tunnel/link/farewell"
)

// How the farewells left by a previous process are sent. All agents of a relay reconnect on
// receiving them, so they are not sent to all at once; they are sent twice in case the network
// loses the first.
const (
	farewellsAtOnce = 20
	farewellPause   = 20 * time.Millisecond
	farewellAgain   = time.Second
)

// answers is how often the peer of a session that has ended is told so, and mostFarewells is for
// how many sessions the farewell is remembered: the newest of those that lasted. Sessions of
// strangers do not last, so they do not take the places of others.
const (
	answers       = 16
	mostFarewells = 1 << 14
	lasted        = 15 * time.Second
)

// sealFarewell makes the record that ends a Listener's session for a peer that might not hear of
// the end: an alert sealed with the session's keys, as its last record would be.
func (c *Conn) sealFarewell() {
	if c.listener == nil || len(c.localCID) == 0 {
		return
	}
	p := make([]byte, c.out.head+2+c.out.tail)
	p[c.out.head], p[c.out.head+1] = alertFatal, alertInternalError
	c.out.seal(p, typeAlert, epoch1|farewellNumber)
	c.farewell, c.since = p, time.Now()
}

// keepFarewell stores where to send the farewell to a session's peer if this process is killed. On
// a detour the address is neither known nor needed: the end of the connection tells the peer.
func (l *Listener) keepFarewell(c *Conn) {
	if c.farewell == nil || l.cfg.Farewells == nil {
		return
	}
	w := farewell.Word{Record: c.farewell}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := c.at.Load(); at.sock == l.sock { // here, so that who comes last has the newest
		w.To, w.From = at.addr.AddrPort, at.addr.Local()
	}
	if l.byCID[c.routeKey] == c {
		l.cfg.Farewells.Keep(farewell.ID(c.routeKey), w)
	}
}

// endFarewell records that a session has ended. Its peer may not know: it was asleep, or the
// notification was lost.
func (l *Listener) endFarewell(c *Conn) {
	id := farewell.ID(c.routeKey)
	if l.cfg.Farewells != nil {
		l.cfg.Farewells.Drop(id)
	}
	if !c.ready.Load() || c.farewell == nil || time.Since(c.since) < lasted {
		return
	}
	var alert *AlertError
	if !errors.Is(c.err, ErrPeerClosed) && !errors.As(c.err, &alert) {
		l.farewells.add(id, c.farewell)
	}
}

// farewells are those of sessions that have ended, including sessions of the previous process.
type farewells struct {
	mu    sync.Mutex
	words map[farewell.ID]*lastWord
	order []farewell.ID // the oldest first
}

type lastWord struct {
	record   []byte
	answered int
}

func (f *farewells) add(id farewell.ID, record []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.words[id] != nil {
		return
	}
	if len(f.order) == mostFarewells {
		delete(f.words, f.order[0])
		f.order = f.order[1:]
	}
	if f.words == nil {
		f.words = make(map[farewell.ID]*lastWord)
	}
	f.words[id] = &lastWord{record: record}
	f.order = append(f.order, id)
}

// answer returns the farewell to send to a session's peer that was heard from, or nil if there is
// none to send.
func (f *farewells) answer(id farewell.ID) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := f.words[id]
	if w == nil || w.answered == answers {
		return nil
	}
	w.answered++
	return w.record
}

// sayFarewells sends what the previous process has left to the peers whose address is known.
func (l *Listener) sayFarewells(ctx context.Context) {
	if l.cfg.Farewells == nil {
		return
	}
	left := l.cfg.Farewells.Left()
	if len(left) == 0 {
		return
	}
	for id, w := range left {
		l.farewells.add(id, w.Record)
	}
	ids := slices.Collect(maps.Keys(left))
	begun := time.Now()
	for round := range 2 {
		for part := range slices.Chunk(ids, farewellsAtOnce) {
			for _, id := range part {
				if w := left[id]; w.To.IsValid() {
					l.say(w)
				}
				if round == 1 {
					l.cfg.Farewells.Drop(id)
				}
			}
			if !sleep(ctx, farewellPause) {
				return
			}
		}
		if !sleep(ctx, time.Until(begun.Add(farewellAgain))) {
			return
		}
	}
	l.cfg.Logger.Info("agents of before were told of the new start", "sessions", len(ids))
}

// say sends a farewell, from the address at which its peer knew this side if that still exists
// here.
func (l *Listener) say(w farewell.Word) {
	packets := [][]byte{w.Record}
	if l.sock.conn.WriteBatch(packets, udpbatch.AddrFrom(w.To, w.From)) != nil {
		_ = l.sock.conn.WriteBatch(packets, udpbatch.AddrFrom(w.To, netip.Addr{}))
	}
}

// answerFarewell answers a record of a session that has ended, and reports whether it did.
func (l *Listener) answerFarewell(p []byte, to *path) bool {
	r, _, ok := parse(p, cidSize)
	if !ok || r.typ != typeCID {
		return false
	}
	word := l.farewells.answer(farewell.ID(r.cid))
	if word == nil {
		return false
	}
	_ = to.sock.conn.WriteBatch([][]byte{word}, to.addr)
	return true
}

// sleep waits for a while, and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
