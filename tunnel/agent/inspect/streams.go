package inspect

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// maxStreams is how many requests of one HTTP/2 connection are followed at once.
const maxStreams = 1024

// streams hears the requests of one HTTP/2 connection. They are stored in the form of HTTP/1.1
// messages, so that nothing else needs to know the difference.
type streams struct {
	tap                *Tap
	requests, answered *frames

	mu     sync.Mutex
	open   map[uint32]*entry // whose answer has not ended
	last   uint32            // the highest stream that was heard of
	dead   bool              // no more are looked for
	newest *entry            // the request that was heard last
}

// HTTP2 returns a Tap for a connection of HTTP/2 requests, or nil if the inspector is off.
func (ins *Inspector) HTTP2(meta Meta) *Tap {
	if ins == nil || ins.limits.Memory < 0 {
		return nil
	}
	t := &Tap{ins: ins, meta: meta}
	s := &streams{tap: t, open: make(map[uint32]*entry)}
	s.requests = newFrames(&streamRequests{s}, http2.ClientPreface)
	s.answered = newFrames(&streamAnswers{s}, "")
	t.streams = s
	return t
}

// of returns the entry of a stream whose response has not ended; nil if there is none.
func (s *streams) of(stream uint32) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open[stream]
}

// take forgets a stream and returns its entry; nil if there is none.
func (s *streams) take(stream uint32) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.open[stream]
	delete(s.open, stream)
	return e
}

// takeAll forgets all streams, current and future, and returns their entries.
func (s *streams) takeAll() []*entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]*entry, 0, len(s.open))
	for _, e := range s.open {
		list = append(list, e)
	}
	s.open, s.dead = nil, true
	return list
}

// latest returns the request that was heard last; nil if there is none.
func (s *streams) latest() *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// finish ends the answer of a stream.
func (s *streams) finish(stream uint32, problem string) {
	e := s.take(stream)
	if e == nil {
		return
	}
	e.mu.Lock()
	e.res.ended = problem == ""
	e.mu.Unlock()
	e.finish(problem)
	s.tap.ins.tell(e)
}

// streamRequests hears the visitors' direction.
type streamRequests struct{ *streams }

func (r *streamRequests) headers(stream uint32, list fields, end bool) {
	if e := r.of(stream); e != nil { // trailers
		e.in.Add(int64(len(appendFields(nil, list))))
		if end {
			r.end(stream)
		}
		return
	}
	method := list.get(":method")
	if !token(method) || len(method) > 32 {
		return
	}
	raw := requestHead(method, list)
	r.mu.Lock()
	if r.dead || stream <= r.last || len(r.open) >= maxStreams {
		r.mu.Unlock()
		return
	}
	e := r.tap.ins.newEntry(r.tap.meta, KindHTTP)
	r.open[stream], r.last, r.newest = e, stream, e
	r.mu.Unlock()
	e.mu.Lock()
	e.method = methodName([]byte(method))
	e.req.ended = end
	e.keepHead(&e.req, raw)
	e.mu.Unlock()
	e.in.Add(int64(len(raw)))
	r.tap.ins.tell(e)
}

func (r *streamRequests) data(stream uint32, b []byte) {
	if e := r.of(stream); e != nil {
		e.asks(b)
	}
}

func (r *streamRequests) end(stream uint32) {
	if e := r.of(stream); e != nil {
		e.mu.Lock()
		e.req.ended = true
		e.mu.Unlock()
	}
}

func (r *streamRequests) reset(stream uint32) {
	r.finish(stream, "the visitor left before the response was complete")
}

func (r *streamRequests) lost(why error) { r.tap.fail(why) }

// streamAnswers hears the origin's direction.
type streamAnswers struct{ *streams }

func (a *streamAnswers) headers(stream uint32, list fields, end bool) {
	e := a.of(stream)
	if e == nil {
		return
	}
	status, _ := strconv.Atoi(list.get(":status"))
	e.mu.Lock()
	answered := e.status != 0
	e.mu.Unlock()
	switch {
	case answered: // trailers, such as the status of gRPC
		e.keepTrailers(appendFields(nil, list))
	case status/100 == 1:
		e.out.Add(int64(len(appendFields(nil, list)))) // interim: the response is still to come
	default:
		raw := []byte("HTTP/2.0 " + strconv.Itoa(status) + " " + http.StatusText(status) + "\r\n")
		raw = append(appendFields(raw, list), "\r\n"...)
		e.mu.Lock()
		e.status, e.firstByte = status, time.Now()
		e.keepHead(&e.res, raw)
		e.mu.Unlock()
		e.out.Add(int64(len(raw)))
		if !end {
			a.tap.ins.tell(e)
		}
	}
	if end {
		a.end(stream)
	}
}

func (a *streamAnswers) data(stream uint32, b []byte) {
	if e := a.of(stream); e != nil {
		e.answers(b)
	}
}

func (a *streamAnswers) end(stream uint32) { a.finish(stream, "") }

func (a *streamAnswers) reset(stream uint32) {
	a.finish(stream, "the local service gave the request up")
}

func (a *streamAnswers) lost(why error) { a.tap.fail(why) }

// keepTrailers shows the fields after a response's body together with those before it.
func (e *entry) keepTrailers(lines []byte) {
	e.out.Add(int64(len(lines)))
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.res.head) < 2 || len(e.res.head)+len(lines) > 2*maxHead || !e.hold(len(lines)) {
		return
	}
	head := make([]byte, 0, len(e.res.head)+len(lines))
	head = append(head, e.res.head[:len(e.res.head)-2]...) // a copy: others may read the old one
	e.res.head = append(append(head, lines...), "\r\n"...)
}

// requestHead returns the head that an HTTP/1.1 request with these fields would have.
func requestHead(method string, list fields) []byte {
	b := append(append(make([]byte, 0, 512), method...), ' ')
	b = append(appendText(b, list.get(":path")), " HTTP/2.0\r\n"...)
	if host := list.get(":authority"); host != "" {
		b = append(appendText(append(b, "Host: "...), host), "\r\n"...)
	}
	return append(appendFields(b, list), "\r\n"...)
}

// appendFields appends the fields, except pseudo-fields, as lines.
func appendFields(b []byte, list fields) []byte {
	for _, h := range list {
		if h.Name == "" || h.Name[0] == ':' {
			continue
		}
		b = append(appendText(b, h.Name), ": "...)
		b = append(appendText(b, h.Value), "\r\n"...)
	}
	return b
}

// appendText appends s without characters that would end its line.
func appendText(b []byte, s string) []byte {
	if !strings.ContainsAny(s, "\r\n\x00") {
		return append(b, s...)
	}
	for i := range len(s) {
		c := s[i]
		if c == '\r' || c == '\n' || c == 0 {
			c = ' '
		}
		b = append(b, c)
	}
	return b
}
