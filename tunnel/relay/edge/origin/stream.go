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

// maxAnswerHead is the largest head of an origin's answer, in bytes; browsers accept the same.
// Each line of it takes some 100 bytes more in memory, for as long as the visitor is being
// answered.
const (
	maxAnswerHead     = 256 << 10
	maxAnswerLines    = 2048
	maxAnswerTrailers = 256 // that an answer announces, in one or more lines
)

var (
	readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, lend.Small) }}
	heads   = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// Stream is a stream of consecutive HTTP/1.1 requests. It belongs either to one request or to
// the pool of its backend.
type Stream struct {
	Conn *Conn
	// Asks says that the origin is waiting for the next step of a sign-in, which any other
	// request would end.
	Asks  bool
	br    *bufio.Reader // nil while the stream is idle
	of    owner         // the visitor it is kept for
	signs bool          // a visitor signs in on it
	idle  time.Time     // since when it has been idle
	used  bool          // it has carried a request before this one
	heard bool          // some of the answer has arrived
	left  int64         // bytes of an answer's head that may still be read; negative outside a head
	lines int           // lines of it that may still come
	head  *bytes.Buffer // what has been read of an answer's head, and perhaps more; nil outside a head

	pool     *idleStreams // of its origin
	patience *time.Timer  // calls wait
	late     atomic.Bool  // the origin did not answer in time and was given up
	waiting  sync.Mutex   // guards since and until
	since    time.Duration
	until    time.Duration
}

func newStream(conn *Conn, pool *idleStreams) *Stream {
	s := &Stream{Conn: conn, left: -1, pool: pool}
	s.patience = time.AfterFunc(math.MaxInt64, s.wait)
	return s
}

// Read reads from the origin. The size of an answer's head is limited.
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
			s.lines -= bytes.Count(b[:n], []byte{'\n'}) // may include some of the body, none of which counts by then
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

// tooLarge reports whether the limit on an answer's head is exceeded.
func (s *Stream) tooLarge() bool { return s.left == 0 || s.left > 0 && s.lines < 0 }

// Answer reads the head of the answer to r.
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
		// http.ReadResponse removes the field and the names that it lists.
		fields := textproto.NewReader(bufio.NewReader(s.head))
		_, _ = fields.ReadLine() // the status line; it has been parsed once without error
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

// Patience gives up on the origin if it sends nothing of its answer for d.
func (s *Stream) Patience(d time.Duration) {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	now := monotime.Now()
	s.since, s.until = now, now+d
	s.patience.Reset(s.turn(d))
}

// turn returns how long to wait before the next check, out of the time left.
func (s *Stream) turn(left time.Duration) time.Duration {
	if s.used || s.until-left-s.since >= makeRoomFor { // the origin has accepted this connection
		return left
	}
	return min(left, makeRoom)
}

// wait is called when a turn of waiting for an answer is over.
func (s *Stream) wait() {
	if s.waits() {
		s.pool.makeRoom()
	}
}

// waits reports whether to wait on. If there is no time left, it gives up on the origin while
// it holds the lock, so that nobody can note an answer first: the stream might then already
// serve another request.
func (s *Stream) waits() bool {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	left := s.until - monotime.Now()
	switch {
	case s.until == 0: // answered
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

// Answered ends the wait begun by Patience.
func (s *Stream) Answered() {
	s.waiting.Lock()
	defer s.waiting.Unlock()
	s.until = 0
	s.patience.Stop()
}

// Fresh notes that a new request begins, and nothing of its answer has arrived.
func (s *Stream) Fresh() { s.heard = false }

// Stale reports whether a request may have got no answer because the origin was just closing
// the stream after an earlier request.
func (s *Stream) Stale() bool { return s.used && !s.heard && !s.late.Load() }

// Buffered returns how many bytes have been read ahead.
func (s *Stream) Buffered() int { return s.br.Buffered() }

// Rest returns a reader of everything that follows.
func (s *Stream) Rest() io.Reader {
	held, _ := s.br.Peek(s.br.Buffered())
	if len(held) == 0 {
		return s
	}
	return io.MultiReader(bytes.NewReader(bytes.Clone(held)), s)
}

// begin prepares the stream for a request.
func (s *Stream) begin() {
	if s.br == nil {
		s.br = readers.Get().(*bufio.Reader)
		s.br.Reset(s)
	}
}

// rest releases what an idle stream does not need.
func (s *Stream) rest() {
	if s.br != nil {
		s.br.Reset(nil)
		readers.Put(s.br)
		s.br = nil
	}
}

func (s *Stream) Close() {
	s.Answered()
	_ = s.Conn.Close() // the stream is discarded in any case
	s.rest()
}

// idleStreams are a backend's streams that are between two requests.
type idleStreams struct {
	mu     sync.Mutex
	list   []*Stream // the most recently used one is last
	owned  int       // how many of them belong to one visitor
	closed bool
	sweep  *time.Timer // runs while the list is not empty
}

// take returns the most recently used stream that is fit for a request, or nil.
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
		if since >= idle { // most others are older still
			return nil
		}
	}
}

// pop removes and returns the visitor's own stream, or else one that anybody may use; of
// either kind, the most recently used.
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

// own returns the index of the visitor's own stream for a request, or -1. If challenges are
// open on several streams, the oldest is most likely the one being answered.
func (p *idleStreams) own(w Want) int {
	of := w.owner()
	if w.Answers {
		if at := slices.IndexFunc(p.list, func(s *Stream) bool { return s.Asks && s.of == of }); at >= 0 {
			return at
		}
	}
	return p.last(of)
}

// last returns the index of the visitor's most recently used stream on which no challenge is
// open, or -1.
func (p *idleStreams) last(of owner) int {
	for i := len(p.list) - 1; i >= 0; i-- {
		if p.list[i].of == of && !p.list[i].Asks {
			return i
		}
	}
	return -1
}

// signs reports whether there is a stream on which a visitor signs in.
func (p *idleStreams) signs(of owner) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.owned > 0 && slices.ContainsFunc(p.list, func(s *Stream) bool { return s.signs && s.of == of })
}

// count updates owned when a stream enters the list (n is 1) or leaves it (-1).
func (p *idleStreams) count(s *Stream, n int) {
	if s.of != (owner{}) {
		p.owned += n
	}
}

// put keeps a stream whose answer has been read to the end.
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

// makeRoom closes all idle streams if none was used a moment ago, except those on which
// somebody is signing in, since the next step needs the same stream. It is called while a new
// stream waits for its first answer: an origin that serves one connection at a time, as many
// devices and development servers do, may be waiting for data on one of the idle streams.
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

// drop removes and returns the streams for which pick returns true. The caller holds p.mu.
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

// expire closes streams that have been idle too long or that the origin has closed.
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

// close closes all idle streams, and makes put close any more.
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
