package inspect

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
)

// entryCost is how much memory an empty entry counts for.
const entryCost = 1024

// While there are many entries, they are listed in batches, because waking up for each would cost
// the traffic more than copying it.
const (
	listPause = 10 * time.Millisecond
	maxNews   = 4096
)

// States of an entry.
const (
	stateOpen   = "open"
	stateDone   = "done"
	stateFailed = "failed"
)

// Inspector keeps the newest entries. Use New to create one; a nil Inspector is off.
type Inspector struct {
	limits Limits
	used   atomic.Int64  // bytes held by entries
	seq    atomic.Uint64 // of the newest entry
	news   chan *entry   // entries that began, changed or ended
	lost   atomic.Int64  // entries that came too fast to be listed
	pace   pace
	follow func(Told)

	mu      sync.Mutex
	entries []*entry // oldest first
}

// New returns an Inspector with the given limits. Entries appear while Run is running.
func New(limits Limits) *Inspector {
	if limits.Memory == 0 {
		limits.Memory = 64 << 20
	}
	if limits.Body <= 0 {
		limits.Body = 512 << 10
	}
	if limits.Entries <= 0 {
		limits.Entries = 10_000
	}
	ins := &Inspector{limits: limits, news: make(chan *entry, maxNews)}
	ins.pace.begin(int64(limits.Memory))
	return ins
}

// Told is an entry of which followers are notified. Its content is computed only if somebody asks
// for it, which is rare.
type Told struct{ entry *entry }

// Data returns the entry's current Summary.
func (t Told) Data() any { return t.entry.summary() }

// remembered is how many of the newest entries can still be reported after their memory has been
// reused.
const remembered = 4096

// Follow makes the inspector call f when an entry begins, is answered, or ends. It must be called
// before Run.
func (ins *Inspector) Follow(f func(Told)) { ins.follow = f }

// Lost returns how many entries were not listed because they came too fast.
func (ins *Inspector) Lost() int64 { return ins.lost.Load() }

// Run lists what taps hear, until ctx ends.
func (ins *Inspector) Run(ctx context.Context) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-ins.news:
			ins.list(e)
		}
		ins.listAll()
		pause.Reset(listPause)
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// listAll lists what has been reported so far, and makes room for more.
func (ins *Inspector) listAll() {
	for i := range len(ins.news) {
		ins.list(<-ins.news)
		if i%64 == 63 {
			ins.evict()
		}
	}
	ins.evict()
}

// tell passes e to Run, or drops it if Run is behind.
func (ins *Inspector) tell(e *entry) {
	e.mu.Lock()
	queued := e.queued
	e.queued = true
	e.mu.Unlock()
	if queued {
		return // Run will see it as it is then
	}
	select {
	case ins.news <- e:
	default:
		e.mu.Lock()
		e.queued = false
		lost := !e.listed && !e.missed
		e.missed = e.missed || lost
		e.mu.Unlock()
		if lost {
			ins.lost.Add(1)
			e.drop()
		}
	}
}

func (ins *Inspector) list(e *entry) {
	e.mu.Lock()
	e.queued = false
	add := !e.listed && !e.gone
	gone := e.gone
	e.listed = true
	e.mu.Unlock()
	if gone {
		return
	}
	if add {
		ins.mu.Lock()
		ins.entries = append(ins.entries, e)
		for i := len(ins.entries) - 1; i > 0 && ins.entries[i-1].seq > e.seq; i-- {
			ins.entries[i-1], ins.entries[i] = ins.entries[i], ins.entries[i-1]
		}
		ins.mu.Unlock()
	}
	e.mu.Lock()
	now := stage{e.state, e.status}
	news := e.told != now
	e.told = now
	e.mu.Unlock()
	if ins.follow != nil && news {
		ins.follow(Told{e})
	}
}

// evict makes room by removing the oldest entries.
func (ins *Inspector) evict() {
	most := int64(ins.limits.Memory)
	most -= most / 8
	ins.mu.Lock()
	n := 0
	freed := int64(0)
	for n < len(ins.entries) && (len(ins.entries)-n > ins.limits.Entries || ins.used.Load()-freed > most) {
		freed += ins.entries[n].weight()
		n++
	}
	old := slices.Clone(ins.entries[:n])
	clear(ins.entries[:n])
	ins.entries = ins.entries[n:]
	ins.mu.Unlock()
	for _, e := range old {
		e.drop()
	}
}

// Clear removes all entries, and returns how many there were.
func (ins *Inspector) Clear() int {
	if ins == nil {
		return 0
	}
	ins.mu.Lock()
	old := ins.entries
	ins.entries = nil
	ins.mu.Unlock()
	for _, e := range old {
		e.drop()
	}
	return len(old)
}

func (ins *Inspector) find(id string) *entry {
	if ins == nil {
		return nil
	}
	seq, ok := parseID(id)
	if !ok {
		return nil
	}
	ins.mu.Lock()
	defer ins.mu.Unlock()
	i, found := slices.BinarySearchFunc(ins.entries, seq, func(e *entry, seq uint64) int {
		switch {
		case e.seq < seq:
			return -1
		case e.seq > seq:
			return 1
		}
		return 0
	})
	if !found {
		return nil
	}
	return ins.entries[i]
}

func formatID(seq uint64) string { return "req_" + strconv.FormatUint(seq, 10) }

// IsID reports whether id has the form of an entry's id, whether or not such an entry exists.
func IsID(id string) bool {
	_, ok := parseID(id)
	return ok
}

func parseID(id string) (uint64, bool) {
	rest, ok := strings.CutPrefix(id, "req_")
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(rest, 10, 64)
	return seq, err == nil
}

// List returns the entries selected by f, newest first.
func (ins *Inspector) List(f Filter) []Summary {
	out := []Summary{}
	for _, e := range ins.pick(f) {
		out = append(out, e.summary())
	}
	return out
}

func (ins *Inspector) pick(f Filter) []*entry {
	if ins == nil {
		return nil
	}
	limit := f.Limit
	switch {
	case limit <= 0:
		limit = 100
	case limit > 10_000:
		limit = 10_000
	}
	before, paged := parseID(f.Before)
	text := strings.ToLower(f.Text)
	escaped := strings.ToLower(asInPaths(f.Text))
	ins.mu.Lock()
	all := slices.Clone(ins.entries)
	ins.mu.Unlock()
	var out []*entry
	for _, e := range slices.Backward(all) {
		if len(out) == limit {
			break
		}
		if paged && e.seq >= before || !e.matches(f, text, escaped) {
			continue
		}
		out = append(out, e)
	}
	return out
}

// asInPaths returns text with non-ASCII characters in the form that they have in paths:
// percent-encoded (RFC 3986, section 2.1).
func asInPaths(text string) string {
	if !strings.ContainsFunc(text, notASCII) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if notASCII(r) {
			b.WriteString(url.PathEscape(string(r)))
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func notASCII(r rune) bool { return r > unicode.MaxASCII }

// matches reports whether f selects the entry; text and escaped are its Text in lower case, as it
// is and as it would be in paths.
func (e *entry) matches(f Filter, text, escaped string) bool {
	s := e.summary()
	switch {
	case f.TunnelID != "" && s.TunnelID != f.TunnelID,
		f.Kind != "" && s.Kind != f.Kind,
		f.Method != "" && !strings.EqualFold(s.Method, f.Method),
		f.Status > 9 && s.Status != f.Status,
		f.Status > 0 && f.Status <= 9 && s.Status/100 != f.Status,
		!f.Since.IsZero() && s.Time.Before(f.Since),
		!f.Until.IsZero() && !s.Time.Before(f.Until):
		return false
	case text == "":
		return true
	}
	// In the form in which the page searches, because the page exports what it found.
	status, visitor := "", s.Visitor
	if s.Status != 0 {
		status = strconv.Itoa(s.Status)
	}
	if s.Client != "" {
		visitor = s.Client + " " + visitor
	}
	line := s.Method + " " + s.Host + s.Path + " " + status + " " + visitor + " " + s.TunnelName + s.TunnelPath
	line = strings.ToLower(line)
	return strings.Contains(line, text) || strings.Contains(line, escaped)
}

// entry is one request with its response, or one flow.
type entry struct {
	ins      *Inspector
	seq      uint64
	meta     Meta
	kind     string
	start    time.Time
	imported bool

	in, out          atomic.Int64 // bytes that passed
	reqFull, resFull atomic.Bool  // no more of the body is kept

	mu        sync.Mutex
	held      int // bytes counted in ins.used
	listed    bool
	missed    bool
	told      stage
	queued    bool // in ins.news
	gone      bool // dropped: nothing more is kept
	state     string
	problem   string
	end       time.Time
	firstByte time.Time
	method    string
	upgrade   bool
	status    int
	req, res  capture
	known     *parsed // of req.head; nil until asked for, or if it is long
	url       string  // of an imported entry
	messages  []said  // of a WebSocket, oldest first
	talked    int     // bytes that they count for
	unheard   int     // messages that made room, or found none
}

// stage is how far an entry has progressed, for followers.
type stage struct {
	state  string
	status int
}

// capture is what is kept of one message.
type capture struct {
	head      []byte
	body      store
	truncated bool
	ended     bool
}

func (ins *Inspector) newEntry(meta Meta, kind string) *entry {
	e := &entry{ins: ins, seq: ins.seq.Add(1), meta: meta, kind: kind, start: time.Now(), state: stateOpen, held: entryCost}
	ins.used.Add(entryCost)
	return e
}

// hold reports whether n more bytes may be kept. e.mu is held.
func (e *entry) hold(n int) bool {
	if e.gone || e.ins.used.Load()+int64(n) > int64(e.ins.limits.Memory) {
		return false
	}
	e.held += n
	e.ins.used.Add(int64(n))
	return true
}

func (e *entry) weight() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return int64(e.held)
}

// drop frees the memory of the entry.
func (e *entry) drop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone {
		return
	}
	if e.kind == KindHTTP && e.seq+remembered > e.ins.seq.Load() {
		e.known = e.parsedLocked().short()
	} else {
		e.known = &parsed{answered: true}
	}
	e.gone = true
	e.ins.used.Add(-int64(e.held))
	e.held = 0
	e.req.body.free()
	e.res.body.free()
	e.req, e.res, e.url, e.messages = capture{}, capture{}, "", nil
	e.reqFull.Store(true)
	e.resFull.Store(true)
}

// finish ends the entry; the first call counts.
func (e *entry) finish(problem string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != stateOpen {
		return
	}
	e.state, e.problem, e.end = stateDone, problem, time.Now()
	if problem != "" {
		e.state = stateFailed
	}
}

func (e *entry) summary() Summary {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.summaryLocked()
}

func (e *entry) summaryLocked() Summary {
	end := e.end
	if e.state == stateOpen {
		end = time.Now()
	}
	s := Summary{
		ID: formatID(e.seq), Kind: e.kind, TunnelID: e.meta.TunnelID, TunnelName: e.meta.TunnelName,
		Type: e.meta.Type, TunnelPath: e.meta.Path, Time: e.start.UTC(), Visitor: e.meta.Visitor, Client: e.meta.Client, State: e.state,
		DurationMillis: float64(end.Sub(e.start).Microseconds()) / 1000,
		BytesIn:        e.in.Load(), BytesOut: e.out.Load(), Error: e.problem,
		ReplayOf: e.meta.ReplayOf, Imported: e.imported,
		Method: e.method, Status: e.status,
	}
	if e.kind == KindHTTP {
		p := e.parsedLocked()
		s.Host, s.Path, s.ContentType = p.host, p.path, p.contentType
		if p.visitor != "" {
			s.Visitor = p.visitor
		}
	}
	return s
}
