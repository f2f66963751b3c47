package origin

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"adit/internal/lend"
	"adit/internal/monotime"
)

var errHeadTooLarge = errors.New("the head of the origin's answer is too large")

// maxAnswerHead is the largest head of an origin's answer, in bytes: as browsers take it.
// In memory a line of it has some 100 bytes more, for as long as the visitor is answered.
const (
	maxAnswerHead     = 256 << 10
	maxAnswerLines    = 2048
	maxAnswerTrailers = 256 // that it announces, in a line or several
)

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, lend.Small) }}
	heads   = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// Stream is a stream of HTTP/1.1 requests, one after another. It belongs to
// one request at a time, or to the pool of its backend.
type Stream struct {
	Conn *Conn
	// Asks says that the origin waits for the next step of a sign-in. Any other request
	// would end that.
	Asks  bool
	br    *bufio.Reader // nil while the stream is idle
	of    owner         // whom it is kept for
	signs bool          // that one signs in by it
	idle  time.Time     // since when
	used  bool          // it has carried a request before this one
	heard bool          // something of the answer has come
	left  int64         // of an answer's head, what may still be read; negative outside of one
	lines int           // of it, how many may still come
	head  *bytes.Buffer // what has come of an answer's head, and perhaps more; nil outside of one

	pool     *idleStreams // of its origin
	patience *time.Timer  // calls wait
	late     atomic.Bool  // the origin was given up, which does not answer
	waiting  sync.Mutex   // guards since and until
	since    time.Duration
	until    time.Duration
}

func newStream(conn *Conn, pool *idleStreams) *Stream {
	s := &Stream{Conn: conn, left: -1, pool: pool}
	s.patience = time.AfterFunc(math.MaxInt64, s.wait)
	return s
}

// Read reads from the origin; the head of an answer is bounded.
func (s *Stream) Read(b []byte) (int, error) {
	if s.tooLarge() {
		return 0, errHeadTooLarge
	}
	if s.left > 0 && int64(len(b)) > s.left {
		b = b[:s.left]
	}
	n, err := s.Conn.Read(b)
	if n > 0 {
		s.heard = true
		if s.left > 0 {
			s.left -= int64(n)
			s.lines -= bytes.Count(b[:n], []byte{'\n'}) // and some of the body, of which nothing is read by then
		}
		if s.head != nil {
			s.head.Write(b[:n])
		}
	}
	if err != nil && s.late.Load() {
		err = os.ErrDeadlineExceeded
	}
	return n, err
}

// tooLarge reports whether nothing more of an answer's head is read.
func (s *Stream) tooLarge() bool { return s.left == 0 || s.left > 0 && s.lines < 0 }

// Answer reads the head of an answer to r.
func (s *Stream) Answer(r *http.Request) (*http.Response, error) {
	s.left, s.lines, s.head = maxAnswerHead, maxAnswerLines, heads.Get().(*bytes.Buffer)
	defer func() {
		s.head.Reset()
		if s.head.Cap() <= 2*lend.Small {
			heads.Put(s.head)
		}
		s.left, s.head = -1, nil
	}()
	held, _ := s.br.Peek(s.br.Buffered())
	s.head.Write(held)
	a, err := http.ReadResponse(s.br, r)
	odd := err != nil && s.mend()
	if err != nil && !odd && s.tooLarge() {
		return nil, errHeadTooLarge
	}
	if odd {
		if again, still := http.ReadResponse(s.br, r); still == nil && again.StatusCode >= http.StatusOK {
			a, err = again, nil
		}
	}
	if err == nil && a.Close && a.Header["Connection"] == nil {
		// http.ReadResponse took the field away, with the names that it lists.
		fields := textproto.NewReader(bufio.NewReader(s.head))
		_, _ = fields.ReadLine() // the status; all of it has been read once without an error
		again, _ := fields.ReadMIMEHeader()
		if named := again["Connection"]; named != nil {
			a.Header["Connection"] = named
		}
	}
	if odd && err == nil {
		a.Close = true
	}
	if err == nil && len(a.Trailer) > maxAnswerTrailers {
		return nil, errHeadTooLarge
	}
	return a, err
}

// Patience gives the origin up that sends nothing of its answer for d.
func (s *Stream) Patience(d time.Duration) {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	now := monotime.Now()
	s.since, s.until = now, now+d
	s.patience.Reset(s.turn(d))
}

// turn is how long it waits at a time, of what is left.
func (s *Stream) turn(left time.Duration) time.Duration {
	if s.used || s.until-left-s.since >= makeRoomFor { // the origin has this connection in hand
		return left
	}
	return min(left, makeRoom)
}

// wait has waited for an answer for a turn.
func (s *Stream) wait() {
	if s.waits() {
		s.pool.makeRoom()
	}
}

// waits reports whether there is time left for the answer, and gives the origin up if there
// is none: before anybody can note an answer, for the stream may be another request's then.
func (s *Stream) waits() bool {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	left := s.until - monotime.Now()
	switch {
	case s.until == 0: // it is answered
		return false
	case left > 0:
		turn := s.turn(left)
		s.patience.Reset(turn)
		return turn < left
	}
	s.late.Store(true)
	s.Conn.Reset()
	return false
}

// Answered ends what Patience began.
func (s *Stream) Answered() {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	s.until = 0
	s.patience.Stop()
}

// Fresh notes that a request begins, of whose answer nothing has come.
func (s *Stream) Fresh() { s.heard = false }

// Stale reports whether nothing came back of a request because the origin may have
// closed the stream just then, after another request.
func (s *Stream) Stale() bool { return s.used && !s.heard && !s.late.Load() }

// Buffered is how many bytes have been read of what comes next.
func (s *Stream) Buffered() int { return s.br.Buffered() }

// Rest reads what comes next.
func (s *Stream) Rest() io.Reader {
	held, _ := s.br.Peek(s.br.Buffered())
	if len(held) == 0 {
		return s
	}
	return io.MultiReader(bytes.NewReader(bytes.Clone(held)), s)
}

// begin makes the stream ready for a request.
func (s *Stream) begin() {
	if s.br == nil {
		s.br = readers.Get().(*bufio.Reader)
		s.br.Reset(s)
	}
}

// rest gives back what an idle stream does not need.
func (s *Stream) rest() {
	if s.br != nil {
		s.br.Reset(nil)
		readers.Put(s.br)
		s.br = nil
	}
}

func (s *Stream) Close() {
	s.Answered()
	_ = s.Conn.Close() // the stream is given up in any case
	s.rest()
}

// idleStreams are a backend's streams between two requests.
type idleStreams struct {
	mu     sync.Mutex
	list   []*Stream // the one used last is at the end
	owned  int       // how many of them are one visitor's
	closed bool
	sweep  *time.Timer // runs while there are any
}

// take returns the stream that was used last and is fit for a request.
func (p *idleStreams) take(w Want) *Stream {
	idle := originIdle
	if w.Once {
		idle = onceIdle
	}
	for {
		s := p.pop(w)
		if s == nil {
			return nil
		}
		since := time.Since(s.idle)
		if (since < idle || s.Asks && since < originIdle) && s.Conn.Quiet() {
			s.used = true
			s.begin()
			return s
		}
		s.Close()
		if since >= idle { // most of the others are older
			return nil
		}
	}
}

// pop takes the visitor's own stream that was used last out of the list, or else one of
// those that are anybody's.
func (p *idleStreams) pop(w Want) *Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := -1
	if p.owned > 0 {
		at = p.own(w)
	}
	if at < 0 && !w.Apart {
		at = p.last(owner{})
	}
	if at < 0 {
		return nil
	}
	s := p.list[at]
	copy(p.list[at:], p.list[at+1:])
	p.list[len(p.list)-1] = nil
	p.list = p.list[:len(p.list)-1]
	p.count(s, -1)
	return s
}

// own is where the visitor's own stream is for a request; negative: there is none. Of
// several whose origin asks, the one that has asked first is most likely answered first.
func (p *idleStreams) own(w Want) int {
	of := w.owner()
	if w.Answers {
		if at := slices.IndexFunc(p.list, func(s *Stream) bool { return s.Asks && s.of == of }); at >= 0 {
			return at
		}
	}
	return p.last(of)
}

// last is where the stream of a visitor is that was used last and whose origin does not
// ask; negative: there is none.
func (p *idleStreams) last(of owner) int {
	for i := len(p.list) - 1; i >= 0; i-- {
		if p.list[i].of == of && !p.list[i].Asks {
			return i
		}
	}
	return -1
}

// signs reports whether there is a stream by which a visitor signs in.
func (p *idleStreams) signs(of owner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owned > 0 && slices.ContainsFunc(p.list, func(s *Stream) bool { return s.signs && s.of == of })
}

// count counts a stream that comes into the list or leaves it.
func (p *idleStreams) count(s *Stream, n int) {
	if s.of != (owner{}) {
		p.owned += n
	}
}

// put keeps a stream whose answer was read to its end.
func (p *idleStreams) put(s *Stream) {
	s.rest()
	s.idle = time.Now()
	p.mu.Lock()
	keep := !p.closed && len(p.list) < maxIdle
	if keep {
		p.list = append(p.list, s)
		p.count(s, 1)
		if len(p.list) == 1 {
			if p.sweep == nil {
				p.sweep = time.AfterFunc(originIdle, p.expire)
			} else {
				p.sweep.Reset(originIdle)
			}
		}
	}
	p.mu.Unlock()
	if !keep {
		s.Close()
	}
}

// makeRoom closes all, if none was used a moment ago, but those by which somebody signs in:
// the next step has to come by the same one. It is called while a new stream waits for its
// first answer: an origin that serves one connection at a time, as many devices and servers
// for development do, waits for what comes by one of these.
func (p *idleStreams) makeRoom() {
	p.mu.Lock()
	var old []*Stream
	if n := len(p.list); n > 0 && time.Since(p.list[n-1].idle) >= makeRoom/2 {
		old = p.drop(func(s *Stream) bool { return !s.signs })
	}
	p.mu.Unlock()
	for _, s := range old {
		s.Close()
	}
}

// drop takes those that are picked out of the list; p.mu is held.
func (p *idleStreams) drop(pick func(*Stream) bool) (picked []*Stream) {
	kept := p.list[:0]
	for _, s := range p.list {
		if pick(s) {
			picked = append(picked, s)
			p.count(s, -1)
		} else {
			kept = append(kept, s)
		}
	}
	clear(p.list[len(kept):])
	p.list = kept
	return picked
}

// expire closes what was idle for long or was closed by the origin.
func (p *idleStreams) expire() {
	p.mu.Lock()
	old := p.drop(func(s *Stream) bool { return time.Since(s.idle) >= originIdle || !s.Conn.Quiet() })
	if len(p.list) > 0 && !p.closed {
		p.sweep.Reset(originIdle)
	}
	p.mu.Unlock()
	for _, s := range old {
		s.Close()
	}
}

// close closes what is idle, and what would become so.
func (p *idleStreams) close() {
	p.mu.Lock()
	old := p.list
	p.list, p.owned, p.closed = nil, 0, true
	if p.sweep != nil {
		p.sweep.Stop()
	}
	p.mu.Unlock()
	for _, s := range old {
		s.Close()
	}
}
