package record

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"adit/internal/udpbatch"
	"adit/tunnel/link/farewell"
)

// How the farewells are said that a process has left. All agents of a relay come back
// upon them, so they are not said to all at once; and the second time is for those that
// the network has lost.
const (
	farewellsAtOnce = 20
	farewellPause   = 20 * time.Millisecond
	farewellAgain   = time.Second
	// answerTime is how long peers are answered that are heard, perhaps from another
	// address: by then they have noticed. Each is so often at most.
	answerTime = 30 * time.Second
	answers    = 16
)

// sealFarewell makes the record that ends a Listener's session should its process be
// killed: an alert that the keys of the session have sealed, as a last one would be.
func (c *Conn) sealFarewell() {
	if c.listener == nil || c.cfg.Farewells == nil || len(c.localCID) == 0 {
		return
	}
	p := make([]byte, c.out.head+2+c.out.tail)
	p[c.out.head], p[c.out.head+1] = alertFatal, alertInternalError
	c.out.seal(p, typeAlert, epoch1|farewellNumber)
	c.farewell = p
}

// keepFarewell notes where the peer of a session is to be told. On a detour it is not
// known where, nor needed: the end of the connection tells it.
func (l *Listener) keepFarewell(c *Conn) {
	if c.farewell == nil {
		return
	}
	w := farewell.Word{Record: c.farewell}
	if at := c.at.Load(); at.sock == l.sock {
		w.To, w.From = at.addr.AddrPort, at.addr.Local()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byCID[c.routeKey] == c {
		l.cfg.Farewells.Keep(farewell.ID(c.routeKey), w)
	}
}

// farewells are those that the process before has left.
type farewells struct {
	mu    sync.Mutex
	words map[farewell.ID]*leftWord // nil: nobody is answered any more
}

type leftWord struct {
	farewell.Word
	answered int
}

func newFarewells(book *farewell.Book) *farewells {
	f := &farewells{words: make(map[farewell.ID]*leftWord)}
	if book != nil {
		for id, w := range book.Left() {
			f.words[id] = &leftWord{Word: w}
		}
	}
	return f
}

// sayFarewells says them to those whose address is known, and forgets them.
func (l *Listener) sayFarewells(ctx context.Context) {
	words := l.farewells.words // only here it becomes another, and what is read here never changes
	if len(words) == 0 {
		return
	}
	ids := slices.Collect(maps.Keys(words))
	begun := time.Now()
	for round := range 2 {
		for part := range slices.Chunk(ids, farewellsAtOnce) {
			for _, id := range part {
				if w := words[id]; w.To.IsValid() {
					l.say(w.Word)
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
	sleep(ctx, time.Until(begun.Add(answerTime)))
	l.farewells.mu.Lock()
	l.farewells.words = nil
	l.farewells.mu.Unlock()
}

// say sends a word, from where its peer was spoken to if that is still an address here.
func (l *Listener) say(w farewell.Word) {
	packets := [][]byte{w.Record}
	if l.sock.conn.WriteBatch(packets, udpbatch.AddrFrom(w.To, w.From)) != nil {
		_ = l.sock.conn.WriteBatch(packets, ForeignAddr(w.To))
	}
}

// answerFarewell answers a record of a session of the process before, and reports
// whether it did.
func (l *Listener) answerFarewell(p []byte, to *path) bool {
	r, _, ok := parse(p, cidSize)
	if !ok || r.typ != typeCID {
		return false
	}
	f := l.farewells
	f.mu.Lock()
	w := f.words[farewell.ID(r.cid)]
	if ok = w != nil && w.answered < answers; ok {
		w.answered++
	}
	f.mu.Unlock()
	if ok {
		_ = to.sock.conn.WriteBatch([][]byte{w.Record}, to.addr)
	}
	return ok
}

// sleep waits, and reports whether ctx has not ended.
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
