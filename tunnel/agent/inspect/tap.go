package inspect

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Meta describes the connection that a Tap hears.
type Meta struct {
	TunnelID, TunnelName string
	Type                 string // the tunnel's
	Visitor              string // address:port, if known
	Client               string // the client that visits a private tunnel
	ReplayOf             string // id of the entry that is repeated
	// Secret names request fields whose values are hidden in addition to the usual ones: those that
	// the tunnel itself sends to its origin.
	Secret []string
	// Path is the tunnel's path by which the connection came, if that has its own service, and
	// Prefix is what was stripped from the requests' paths; empty if nothing was.
	Path, Prefix string
}

// maxPending is how many requests may wait for their response on one connection.
const maxPending = 128

// Tap hears one connection. It copies or counts what it is shown, and never blocks. Its methods for
// the visitor's direction must be called from one goroutine at a time, and so must those for the
// origin's direction; Close comes after both. A nil Tap hears nothing.
type Tap struct {
	ins  *Inspector
	meta Meta
	flow *entry // of connections that are not HTTP
	// streams is set for HTTP/2 connections, which need nothing below.
	streams *streams

	request, response framer
	ear               requestEar

	// upgraded is the request that turned the connection into something else, and talk hears the
	// result if it is a WebSocket; talk is set first.
	upgraded atomic.Pointer[entry]
	talk     *talk
	early    []byte // of it, from a visitor who has the answer before the tap

	mu      sync.Mutex
	pending []*entry // requests whose response has not ended, oldest first
	dead    bool     // no more messages are looked for
}

// HTTP returns a Tap for a connection of HTTP/1.1 requests, or nil if the inspector is off.
func (ins *Inspector) HTTP(meta Meta) *Tap {
	if ins == nil || ins.limits.Memory < 0 {
		return nil
	}
	t := &Tap{ins: ins, meta: meta}
	t.ear.tap = t
	t.request = framer{to: &t.ear}
	t.response = framer{response: true, to: &responseEar{tap: t}}
	return t
}

// Flow returns a Tap that only counts, or nil if the inspector is off.
func (ins *Inspector) Flow(meta Meta) *Tap {
	if ins == nil || ins.limits.Memory < 0 {
		return nil
	}
	t := &Tap{ins: ins, meta: meta, flow: ins.newEntry(meta, KindFlow)}
	ins.tell(t.flow)
	return t
}

// FromVisitor shows the next bytes from the visitor.
func (t *Tap) FromVisitor(b []byte) {
	switch {
	case t == nil:
	case t.flow != nil:
		t.flow.in.Add(int64(len(b)))
	case t.streams != nil:
		t.streams.requests.feed(b)
	default:
		if e := t.upgraded.Load(); e != nil {
			t.fromUpgraded(e, b)
		} else if !t.ahead(b) {
			t.request.feed(b)
		}
	}
}

// fromUpgraded handles bytes of a visitor that are no longer HTTP.
func (t *Tap) fromUpgraded(e *entry, b []byte) {
	e.in.Add(int64(len(t.early) + len(b)))
	if t.talk != nil {
		t.talk.visitor.feed(t.early)
		t.talk.visitor.feed(b)
	}
	t.early = nil
}

// maxEarly limits what is kept from a visitor until the response that the visitor already has was
// heard.
const maxEarly = 16 << 10

// ahead keeps bytes that follow an upgrade request and do not begin another request, and reports
// whether it did: the visitor receives the response before the tap hears it.
func (t *Tap) ahead(b []byte) bool {
	if len(t.early) == 0 {
		e := t.ear.cur
		if len(b) == 0 || 'A' <= b[0] && b[0] <= 'Z' || e == nil {
			return false
		}
		e.mu.Lock()
		asked := e.upgrade && e.req.ended && (e.status == 0 || e.status == 101)
		e.mu.Unlock()
		if !asked {
			return false
		}
	}
	if len(t.early)+len(b) > maxEarly {
		return false
	}
	t.early = append(t.early, b...)
	return true
}

// FromOrigin shows the next bytes from the origin.
func (t *Tap) FromOrigin(b []byte) {
	switch {
	case t == nil:
	case t.flow != nil:
		t.flow.out.Add(int64(len(b)))
	case t.streams != nil:
		t.streams.answered.feed(b)
	default:
		t.response.feed(b)
	}
}

// VisitorEnded says that the visitor's direction has ended.
func (t *Tap) VisitorEnded() {
	if t != nil && t.flow == nil && t.streams == nil {
		t.request.closed()
	}
}

// OriginEnded says that the origin's direction has ended.
func (t *Tap) OriginEnded() {
	if t != nil && t.flow == nil && t.streams == nil {
		t.response.closed()
	}
}

// Asked reports whether a request has been heard, and whether it is complete. It belongs to the
// visitor's direction.
func (t *Tap) Asked() (begun, whole bool) {
	if t == nil || t.flow != nil || t.ear.cur == nil {
		return false, false
	}
	e := t.ear.cur
	e.mu.Lock()
	defer e.mu.Unlock()
	return true, e.req.ended
}

// Answered reports whether the newest request has been answered in full. It belongs to the origin's
// direction, and may be called once the request was heard.
func (t *Tap) Answered() bool {
	if t == nil || t.flow != nil || t.ear.cur == nil {
		return false
	}
	e := t.ear.cur
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.res.ended
}

// Refuse ends a connection that the origin did not accept, and gives the reason. status is the
// status that the visitor gets, or zero if unknown. Refuse is called instead of the methods that
// show the origin's bytes. The visitor is listed even if no request was heard.
func (t *Tap) Refuse(status int, why string) {
	if t == nil {
		return
	}
	if t.flow != nil {
		t.flow.finish(why)
		t.ins.tell(t.flow)
		return
	}
	open := t.takeOpen()
	if len(open) == 0 {
		open = append(open, t.ins.newEntry(t.meta, KindHTTP))
	}
	for _, e := range open {
		e.mu.Lock()
		e.status = status
		e.mu.Unlock()
		e.finish(why)
		t.ins.tell(e)
	}
}

// Close ends whatever is still open.
func (t *Tap) Close() {
	if t == nil {
		return
	}
	if t.flow != nil {
		t.flow.finish("")
		t.ins.tell(t.flow)
		return
	}
	for _, e := range t.takeOpen() {
		e.finish("the connection ended before the response was complete")
		t.ins.tell(e)
	}
	if e := t.upgraded.Load(); e != nil {
		t.fromUpgraded(e, nil)
		e.finish("")
		t.ins.tell(e)
	}
}

// takeOpen returns the requests whose response has not ended. No more are looked for.
func (t *Tap) takeOpen() []*entry {
	if t.streams != nil {
		return t.streams.takeAll()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	open := t.pending
	t.pending, t.dead = nil, true
	return open
}

// fail gives up on the connection's messages.
func (t *Tap) fail(why error) {
	for _, e := range t.takeOpen() {
		e.finish(why.Error())
		t.ins.tell(e)
	}
}

// requestEar hears the visitor's framer.
type requestEar struct {
	tap *Tap
	cur *entry
}

func (r *requestEar) message(raw []byte, h head) (bodyKind, int64) {
	t := r.tap
	t.mu.Lock()
	if t.dead || len(t.pending) >= maxPending {
		t.mu.Unlock()
		t.request.state = inNothing
		return noBody, 0
	}
	e := t.ins.newEntry(t.meta, KindHTTP)
	r.cur = e
	t.pending = append(t.pending, e)
	t.mu.Unlock()
	e.mu.Lock()
	e.method, e.upgrade = h.method, h.upgrade
	e.keepHead(&e.req, raw)
	e.mu.Unlock()
	e.in.Add(int64(len(raw)))
	t.ins.tell(e)
	return h.body(false)
}

func (r *requestEar) body(b []byte) {
	if r.cur != nil {
		r.cur.asks(b)
	}
}

func (r *requestEar) end() {
	if r.cur != nil {
		r.cur.mu.Lock()
		r.cur.req.ended = true
		r.cur.mu.Unlock()
	}
}

func (r *requestEar) lost(why error) {
	// A visitor may leave while the response still comes; and what follows a
	// request to upgrade is no HTTP, even if the response is not seen yet.
	upgrading := false
	if r.cur != nil {
		r.cur.mu.Lock()
		upgrading = r.cur.upgrade && r.cur.req.ended
		r.cur.mu.Unlock()
	}
	if !errors.Is(why, errCut) && !upgrading {
		r.tap.fail(why)
	}
}

// responseEar hears the origin's framer.
type responseEar struct {
	tap *Tap
	cur *entry
}

func (r *responseEar) message(raw []byte, h head) (bodyKind, int64) {
	t := r.tap
	t.mu.Lock()
	var e *entry
	if len(t.pending) > 0 {
		e = t.pending[0]
	}
	t.mu.Unlock()
	if e == nil { // an answer to nothing
		t.response.state = inNothing
		return noBody, 0
	}
	e.out.Add(int64(len(raw)))
	if h.status/100 == 1 && h.status != 101 {
		r.cur = nil // interim: the response is still to come
		return noBody, 0
	}
	r.cur = e
	e.mu.Lock()
	e.status = h.status
	method := e.method
	e.firstByte = time.Now()
	e.keepHead(&e.res, raw)
	e.mu.Unlock()
	kind, length := h.body(true)
	switch {
	case h.status == 101, method == "CONNECT" && h.status/100 == 2:
		t.mu.Lock()
		t.pending, t.dead = nil, true
		t.mu.Unlock()
		t.talk = newTalk(e, raw)
		t.upgraded.Store(e)
		kind, length = rawBody, 0
	case method == "HEAD", h.status == 204, h.status == 304:
		kind, length = noBody, 0
	}
	if kind != noBody {
		t.ins.tell(e)
	}
	return kind, length
}

func (r *responseEar) body(b []byte) {
	e := r.cur
	if e == nil {
		return
	}
	if e != r.tap.upgraded.Load() {
		e.answers(b)
		return
	}
	e.out.Add(int64(len(b)))
	if talk := r.tap.talk; talk != nil {
		talk.origin.feed(b)
	}
}

func (r *responseEar) end() {
	t, e := r.tap, r.cur
	r.cur = nil
	if e == nil {
		return
	}
	t.mu.Lock()
	if len(t.pending) > 0 && t.pending[0] == e {
		copy(t.pending, t.pending[1:])
		t.pending[len(t.pending)-1] = nil
		t.pending = t.pending[:len(t.pending)-1]
	}
	t.mu.Unlock()
	e.mu.Lock()
	e.res.ended = true
	e.mu.Unlock()
	e.finish("")
	t.ins.tell(e)
}

func (r *responseEar) lost(why error) { r.tap.fail(why) }

// asks processes the next bytes of the request's body.
func (e *entry) asks(b []byte) {
	e.in.Add(int64(len(b)))
	if e.reqFull.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keepBody(&e.req, b) {
		e.reqFull.Store(true)
	}
}

// answers processes the next bytes of the response's body.
func (e *entry) answers(b []byte) {
	e.out.Add(int64(len(b)))
	if e.resFull.Load() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keepBody(&e.res, b) {
		e.resFull.Store(true)
	}
}

// keepHead stores raw, which the entry then owns. e.mu is held.
func (e *entry) keepHead(c *capture, raw []byte) {
	if e.hold(len(raw)) {
		c.head = raw
	} else if i := bytes.IndexByte(raw, '\n'); i >= 0 && i < 2048 {
		c.head = append(bytes.Clone(raw[:i+1]), "\r\n"...) // the first line at least
		c.truncated = true
	}
}

// keepBody copies what the limits leave room for, and reports whether that was the last. e.mu is
// held.
func (e *entry) keepBody(c *capture, b []byte) (full bool) {
	if room := e.ins.limits.Body - c.body.size; len(b) > room {
		b, full = b[:room], true
	}
	if room := smallBody - c.body.size; len(b) > max(room, 0) && !e.ins.pace.take(len(b)) {
		b, full = b[:max(room, 0)], true
	}
	if e.hold(c.body.cost(len(b))) {
		c.body.add(b)
	} else {
		full = true
	}
	c.truncated = c.truncated || full
	return full
}
